//! Conversion of `ChameleonForConditionalGeneration`. Query and key projections and the weights of
//! their norms are permuted to the interleaved RoPE layout.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::keys::Keys;
use crate::convert::{Converter, Description, defaults, steps};
use crate::schema::key;

pub(crate) struct Chameleon;

/// Description of [`Chameleon`].
pub(crate) static CHAMELEON: Description = Description {
    classes: &["ChameleonForConditionalGeneration", "ChameleonForCausalLM"],
    architecture: "chameleon",
    model_type: "chameleon",
    pre_tokenizers: &["chameleon"],
    config_fields: &[(key::SWIN_NORM, "swin_norm")],
    ..Description::DECODER
};

impl Converter for Chameleon {
    fn description(&self) -> &'static Description {
        &CHAMELEON
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::SWIN_NORM, config.bool("swin_norm")?.unwrap_or(false));
        Ok(())
    }

    // The norms have a row per head and are permuted along the row.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if name.contains("attn_q_norm") || name.contains("attn_k_norm") {
            let permuted = Step::InterleaveHalves { heads: 1 };
            return Ok(vec![Step::Transpose, permuted, Step::Transpose]);
        }
        steps::llama_order(config, name)
    }
}
