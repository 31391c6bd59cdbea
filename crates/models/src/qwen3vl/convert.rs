//! The text models of Qwen 2, 2.5 and 3 VL, whose positions have three dimensions.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;
use serde_json::json;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, Exported, VocabularyKind, export, hparams};
use crate::qwen2vl::convert::sections;
use crate::schema::key;

pub(crate) struct Qwen3vl;

impl Converter for Qwen3vl {
    fn classes(&self) -> &'static [&'static str] {
        &["Qwen3VLForConditionalGeneration"]
    }

    fn architecture(&self) -> &'static str {
        "qwen3vl"
    }

    fn model_type(&self) -> &'static str {
        "qwen3_vl"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::SentencePieceElseBpe
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["qwen2"]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false)]
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

impl Converter for Qwen3asr {
    fn base(&self) -> &'static dyn Converter {
        &Qwen3vl
    }

    fn classes(&self) -> &'static [&'static str] {
        &["Qwen3ASRForConditionalGeneration"]
    }

    fn model_type(&self) -> &'static str {
        "qwen3_asr"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::QwenTurns { chatml: true }
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
