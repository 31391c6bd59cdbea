//! The text models of Qwen 2, 2.5 and 3 VL, whose positions have three dimensions.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::json;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, Description, Exported, VocabularyKind, export, hparams};
use crate::qwen2vl::convert::sections;
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
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.decoder(config, hparams::stated_head_dim(config)?.or(Some(128)))?;
        keys.set(key::N_DEEPSTACK_LAYERS, deepstack_layers(config));
        Ok(())
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(seeing(model, exported))
    }
}

/// Qwen 3 that hears speech: its text model.
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

/// The layers that get features of their own from the encoder of images.
pub(crate) fn deepstack_layers(config: &Config) -> u32 {
    let layers = &config.json()["vision_config"]["deepstack_visual_indexes"];
    layers.as_array().map_or(0, |layers| layers.len() as u32)
}

pub(crate) fn seeing(model: &Model, exported: Exported) -> Exported {
    let layers = export::count(model, key::N_DEEPSTACK_LAYERS).unwrap_or(0).min(1 << 16);
    // Which ones, only the encoder knows.
    let indexes: Vec<u64> = (0..layers).collect();
    sections(model, exported).set("vision_config", json!({"deepstack_visual_indexes": indexes}))
}
