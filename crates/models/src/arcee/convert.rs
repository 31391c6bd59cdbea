//! Arcee: as llama, with feed-forward layers without gates.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::hparams::Keys;
use crate::convert::sentence_transformers::pooling_key;
use crate::convert::{Converter, ExtraTensors, VocabularyKind, hparams};

pub(crate) struct Arcee;

impl Converter for Arcee {
    fn classes(&self) -> &'static [&'static str] {
        &["ArceeForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "arcee"
    }

    fn model_type(&self) -> &'static str {
        "arcee"
    }

    fn vocabulary(&self) -> VocabularyKind {
        VocabularyKind::Llama
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["llama-bpe"]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", false), ("mlp_bias", false)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.llama_like(config, Some(hparams::head_dim(config)?))?;
        pooling_key(keys, config)
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        hparams::llama_order(config, name)
    }

    fn extra_tensors(&self, config: &Config) -> Result<ExtraTensors, Error> {
        hparams::rope_freqs(config)
    }
}
