//! Llama, Mistral and Mixtral: one architecture, `llama`.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, ExtraTensors, VocabularyKind, hparams};
use crate::schema::key;

/// Llama without a mask, as an encoder.
pub(crate) struct LlamaEmbed;

impl Converter for LlamaEmbed {
    fn classes(&self) -> &'static [&'static str] {
        &["LlamaBidirectionalModel"]
    }

    fn architecture(&self) -> &'static str {
        "llama-embed"
    }

    fn model_type(&self) -> &'static str {
        "llama_bidirec"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Llama
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["llama-bpe"]
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        hparams::rope_freqs(config)
    }
}
