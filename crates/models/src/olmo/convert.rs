//! Conversion of OLMo, whose layer norms have no weights.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, defaults, steps};
use crate::schema::key;

pub(crate) struct Olmo;

/// Description of [`Olmo`].
pub(crate) static OLMO: Description = Description {
    classes: &["OlmoForCausalLM", "OLMoForCausalLM"],
    architecture: "olmo",
    model_type: "olmo",
    pre_tokenizers: &["olmo"],
    config_fields: &[(key::ATTENTION_CLAMP_KQV, "clip_qkv")],
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Olmo {
    fn description(&self) -> &'static Description {
        &OLMO
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::ATTENTION_LAYER_NORM_EPSILON, 1e-5f32);
        keys.set_f32(key::ATTENTION_CLAMP_KQV, config.f32(&["clip_qkv"])?);
        Ok(())
    }

    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        steps::llama_order(config, name)
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        defaults::attention(config)
    }
}
