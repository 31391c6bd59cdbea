//! Qwen 3 Next and Qwen 3.5: attention is linear in most layers, by the gated delta rule.

use std::borrow::Cow;

use gguf::{Array, Error};
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::{Keys, Rope};
use crate::convert::{Converter, Description, Exported, mtp};
use crate::qwen3next;
use crate::qwen3next::convert::{FURTHER, QWEN3NEXT, Qwen3next};
use crate::schema::key;

/// MiniCPM-V 4.6, whose text model is that of Qwen 3.5.
const MINICPM_V: &str = "MiniCPMV4_6ForConditionalGeneration";

/// Whether layers that guess further tokens are left out.
fn is_minicpm(config: &Config) -> bool {
    config.class().is_ok_and(|class| class == MINICPM_V)
}

pub(crate) struct Qwen35;

/// Description of [`Qwen35`].
pub(crate) static QWEN35: Description = Description {
    classes: &["Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration", MINICPM_V],
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
            mtp::survey(config, names, FURTHER);
        }
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys_with_sections(config, keys)
    }

    fn skip_tensor(&self, config: &Config, name: &str) -> bool {
        is_minicpm(config) && name.starts_with("mtp")
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        qwen3next::convert::export(model, exported)
    }
}

/// Dimensions that rotate for time, height, width, and one more.
const SECTIONS: [i32; 4] = [11, 11, 10, 0];

pub(crate) fn keys_with_sections(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    qwen3next::convert::keys(config, keys)?;
    if Rope::of(config)?.sections()?.is_none() {
        keys.set(key::ROPE_DIMENSION_SECTIONS, Array::from(&SECTIONS[..]));
    }
    Ok(())
}
