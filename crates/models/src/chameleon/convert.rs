//! Chameleon: images are tokens among those of texts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use crate::convert::hparams::Keys;
use crate::convert::{Converter, hparams};
use crate::schema::key;

pub(crate) struct Chameleon;

impl Converter for Chameleon {
    fn classes(&self) -> &'static [&'static str] {
        &["ChameleonForConditionalGeneration", "ChameleonForCausalLM"]
    }

    fn architecture(&self) -> &'static str {
        "chameleon"
    }

    fn model_type(&self) -> &'static str {
        "chameleon"
    }

    fn pre_tokenizers(&self) -> &'static [&'static str] {
        &["chameleon"]
    }

    fn config_fields(&self) -> &'static [(&'static str, &'static str)] {
        &[(key::SWIN_NORM, "swin_norm")]
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-5);
        hparams::default_attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set(key::SWIN_NORM, config.bool("swin_norm")?.unwrap_or(false));
        Ok(())
    }

    // As in llama, also for the norms of heads, a row each.
    fn modify_tensor(&self, config: &Config, name: &str) -> Result<Vec<Step>, Error> {
        if name.contains("attn_q_norm") || name.contains("attn_k_norm") {
            let turned = Step::InterleaveHalves { heads: 1 };
            return Ok(vec![Step::Transpose, turned, Step::Transpose]);
        }
        hparams::llama_order(config, name)
    }
}
