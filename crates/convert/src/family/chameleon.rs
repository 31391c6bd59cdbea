//! Chameleon: images are tokens among those of texts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_pipeline::Step;

use super::{Family, hyper};

pub(super) static CHAMELEON: Family = Family {
    classes: &["ChameleonForConditionalGeneration", "ChameleonForCausalLM"],
    architecture: "chameleon",
    model_type: "chameleon",
    pre_tokenizers: &["chameleon"],
    fields: &[("swin_norm", "swin_norm")],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    keys: |config, keys| {
        keys.stated(config)?;
        keys.set("swin_norm", config.bool("swin_norm")?.unwrap_or(false));
        Ok(())
    },
    steps,
    ..Family::DEFAULT
};

/// As in llama, also for the norms of heads, a row each.
fn steps(config: &Config, name: &str) -> Result<Vec<Step>, Error> {
    if name.contains("attn_q_norm") || name.contains("attn_k_norm") {
        let turned = Step::InterleaveHalves { heads: 1 };
        return Ok(vec![Step::Transpose, turned, Step::Transpose]);
    }
    hyper::llama_order(config, name)
}
