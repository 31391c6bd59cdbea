//! Jais: the second generation with norms with bias and feed-forward layers without gates, and the first.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::hparams::Keys;
use crate::convert::tensor_names::{LLAMA_LIKE, Table};
use crate::convert::{Converter, hparams};
use crate::schema::key;

pub(crate) struct Jais2;

impl Converter for Jais2 {
    fn classes(&self) -> &'static [&'static str] {
        &["Jais2ForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "jais2"
    }

    fn model_type(&self) -> &'static str {
        "jais2"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["jais-2"]
    }

    fn tensor_names(&self) -> &'static [Table] {
        &[LLAMA_LIKE]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[(key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps")]
    }

    fn required_flags(&self) -> &'static [(&'static str, bool)] {
        &[("attention_bias", true), ("mlp_bias", true)]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("layer_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }
}
