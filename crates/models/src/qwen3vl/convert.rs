//! Conversion of the text models of Qwen3-VL and Qwen3-ASR.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::json;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, Exported, VocabularyKind, defaults, export, hparams};
use crate::qwen2vl::convert::export_mrope_sections;
use crate::schema::key;

pub(crate) struct Qwen3vl;

/// Description of [`Qwen3vl`].
pub(crate) static QWEN3VL: Description = Description {
    classes: &["Qwen3VLForConditionalGeneration"],
    architecture: "qwen3vl",
    model_type: "qwen3_vl",
    vocabulary: VocabularyKind::SentencePieceElseBpe,
    pre_tokenizers: &["qwen2"],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Qwen3vl {
    fn description(&self) -> &'static Description {
        &QWEN3VL
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?.or(Some(128)))?;
        keys.set(key::N_DEEPSTACK_LAYERS, deepstack_layers(config));
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_vl(model, exported))
    }
}

/// Converter of the text model of Qwen3-ASR.
pub(crate) struct Qwen3asr;

/// Description of [`Qwen3asr`].
pub(crate) static QWEN3ASR: Description = Description {
    classes: &["Qwen3ASRForConditionalGeneration"],
    model_type: "qwen3_asr",
    vocabulary: VocabularyKind::QwenTurns { chatml: true },
    ..QWEN3VL
};

impl Converter for Qwen3asr {
    fn description(&self) -> &'static Description {
        &QWEN3ASR
    }

    fn base(&self) -> &'static dyn Converter {
        &Qwen3vl
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        Qwen3vl.hyper_parameters(config, keys)?;
        keys.set(key::N_DEEPSTACK_LAYERS, 0u32);
        Ok(())
    }

    fn export(&self, _: &Model, _: Exported) -> Option<Exported> {
        None
    }
}

/// Returns the number of layers that get DeepStack features of the vision encoder.
pub(crate) fn deepstack_layers(config: &Config) -> u32 {
    let layers = &config.json()["vision_config"]["deepstack_visual_indexes"];
    layers.as_array().map_or(0, |layers| layers.len() as u32)
}

/// Completes the description of an export with M-RoPE sections and DeepStack layers.
pub(crate) fn export_vl(model: &Model, exported: Exported) -> Exported {
    let layers = export::count(model, key::N_DEEPSTACK_LAYERS).unwrap_or(0).min(1 << 16);
    // Only the vision encoder knows which of its layers are meant.
    let indexes: Vec<u64> = (0..layers).collect();
    export_mrope_sections(model, exported)
        .set("vision_config", json!({"deepstack_visual_indexes": indexes}))
}
