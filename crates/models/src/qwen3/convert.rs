//! Qwen2 and Qwen3, dense.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{Converter, Exported, VocabularyKind, hparams, sliding_window};

pub(crate) struct Qwen3;

impl Converter for Qwen3 {
    fn classes(&self) -> &'static [&'static str] {
        &["Qwen3ForCausalLM", "Qwen3Model", "StepVLForConditionalGeneration"]
    }

    fn architecture(&self) -> &'static str {
        "qwen3"
    }

    fn model_type(&self) -> &'static str {
        "qwen3"
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

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        // As `transformers` completes it; the width of a head of Qwen2 it does not complete.
        keys.decoder(config, hparams::stated_head_dim(config)?.or(Some(128)))?;
        sliding_window::qwen(keys, config, |layer, first| layer >= first)?;
        pooling_key(keys, config)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(sliding_window::export_of_qwen(model, exported))
    }
}
