//! Conversion of dense Qwen3.5 models: as Qwen3-Next with M-RoPE sections.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::rope::Rope;
use crate::convert::{Converter, Description, Exported, mtp};
use crate::qwen3next::convert::{MTP_COUNT, QWEN3NEXT, Qwen3next, export_hybrid};
use crate::schema::key;

/// MiniCPM-V 4.6, whose text model is a Qwen3.5.
const MINICPM_V_CLASS: &str = "MiniCPMV4_6ForConditionalGeneration";

/// Default of the M-RoPE sections: rotary dimensions for time, height, width and one unused section.
const DEFAULT_SECTIONS: [i32; 4] = [11, 11, 10, 0];

/// Returns whether the model is a MiniCPM-V, whose MTP layers are left out.
fn is_minicpm(config: &Config) -> bool {
    config.class().is_ok_and(|class| class == MINICPM_V_CLASS)
}

pub(crate) struct Qwen35;

/// Description of [`Qwen35`].
pub(crate) static QWEN35: Description = Description {
    classes: &["Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration", MINICPM_V_CLASS],
    architecture: "qwen35",
    model_type: "qwen3_5_text",
    pre_tokenizers: &["qwen35", "qwen2"],
    ..QWEN3NEXT
};

impl Converter for Qwen35 {
    fn description(&self) -> &'static Description {
        &QWEN35
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen3next
    }

    fn infer_from_names(&self, config: &mut Config, names: &mut dyn Iterator<Item = Cow<'_, str>>) {
        if !is_minicpm(config) {
            mtp::survey(config, names, MTP_COUNT);
        }
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Qwen3next.hyper_parameters(config, keys)?;
        if Rope::of(config)?.sections()?.is_none() {
            keys.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&DEFAULT_SECTIONS[..]));
        }
        Ok(())
    }

    fn skip_tensor(&self, config: &Config, name: &str) -> bool {
        is_minicpm(config) && name.starts_with("mtp")
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        export_hybrid(model, exported)
    }
}
