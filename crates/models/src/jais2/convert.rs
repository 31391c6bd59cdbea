//! Conversion of Jais 2: Llama's tensor names, with biases everywhere and layer norms.

use gguf::Error;
use gguf_checkpoint::config::Config;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, defaults, hparams};
use crate::schema::key;

pub(crate) struct Jais2;

/// Description of [`Jais2`].
pub(crate) static JAIS2: Description = Description {
    classes: &["Jais2ForCausalLM"],
    architecture: "jais2",
    model_type: "jais2",
    pre_tokenizers: &["jais-2"],
    tensor_names: &[LLAMA_LIKE],
    config_fields: &[(key::ATTENTION_LAYER_NORM_EPSILON, "layer_norm_eps")],
    required_flags: &[("attention_bias", true), ("mlp_bias", true)],
    ..Description::DECODER
};

impl Converter for Jais2 {
    fn description(&self) -> &'static Description {
        &JAIS2
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("layer_norm_eps", 1e-5);
        let head_dim = hparams::head_dim(config)?;
        config.default("head_dim", head_dim);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ROPE_DIMENSION_COUNT, hparams::head_dim(config)?);
        Ok(())
    }
}
