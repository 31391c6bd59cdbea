//! Conversion of `Dots1ForCausalLM`. The router function `noaux_tc` of early configurations means
//! sigmoid.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use crate::convert::keys::Keys;
use crate::convert::tensor_names::LLAMA_LIKE;
use crate::convert::{Converter, Description, Exported, Mapping, defaults, export, moe};
use crate::schema::key;

pub(crate) struct Dots1;

/// Description of [`Dots1`].
pub(crate) static DOTS1: Description = Description {
    classes: &["Dots1ForCausalLM"],
    architecture: "dots1",
    model_type: "dots1",
    pre_tokenizers: &["qwen2"],
    tensor_names: &[moe::BESIDE_SHARED, LLAMA_LIKE],
    config_fields: moe::ROUTED_FIELDS,
    required_flags: &[("attention_bias", false)],
    ..Description::DECODER
};

impl Converter for Dots1 {
    fn description(&self) -> &'static Description {
        &DOTS1
    }

    fn complete_config(&self, config: &mut Config) -> Result<(), Error> {
        config.default("rms_norm_eps", 1e-6);
        // Some configurations name the selection method instead of the function.
        if config.find(&["scoring_func"]).is_some_and(|(_, name)| name == "noaux_tc") {
            config.set("scoring_func", "sigmoid");
        }
        defaults::attention(config)
    }

    fn hyper_parameters(&self, config: &Config, keys: &mut Keys) -> Result<(), Error> {
        keys.stated(config)?;
        keys.set_u32(key::EXPERT_FEED_FORWARD_LENGTH, config.u32(moe::WIDTH)?);
        keys.set_u32(key::LEADING_DENSE_BLOCK_COUNT, config.u32(&["first_k_dense_replace"])?);
        keys.set_u32(key::EXPERT_SHARED_COUNT, config.u32(&["n_shared_experts"])?);
        keys.set_f32(key::EXPERT_WEIGHTS_SCALE, config.f32(&["routed_scaling_factor"])?);
        keys.set(key::EXPERT_WEIGHTS_NORM, config.bool("norm_topk_prob")?.unwrap_or(false));
        Ok(())
    }

    fn map_tensor(&self, config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
        moe::routed(config, name, moe::ROUTER_BIAS)
    }

    fn export(&self, model: &Model, exported: Exported) -> Option<Exported> {
        Some(export_moe(model, exported))
    }
}

/// Adds names and fields of routed experts, their router and the selection bias to an export.
pub(crate) fn export_moe(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let norm = metadata.bool(&format!("{architecture}.expert_weights_norm"));
    let exported = exported.patterns([moe::ROUTER_BIAS]).patterns(moe::one_by_one());
    match export::count(model, key::EXPERT_GATING_FUNC) {
        Some(2) => exported.set("scoring_func", "sigmoid"),
        Some(1) => exported.set("scoring_func", "softmax"),
        _ => exported,
    }
    .set_some("norm_topk_prob", norm)
}
