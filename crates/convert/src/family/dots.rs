//! dots.llm1: experts after some dense layers, beside one that is always asked.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::LLAMA_LIKE;
use super::{Exported, Family, experts};

pub(super) static DOTS1: Family = Family {
    classes: &["Dots1ForCausalLM"],
    architecture: "dots1",
    model_type: "dots1",
    pre_tokenizers: &["qwen2"],
    names: &[experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: experts::ROUTED_FIELDS,
    expects: &[("attention_bias", false)],
    complete,
    keys,
    special: |config, name| experts::routed(config, name),
    export: |model, exported| Some(export_of_routed(model, exported)),
    ..Family::DEFAULT
};

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-6);
    // The authors call the sigmoid by the method that it belongs to.
    if config.find(&["scoring_func"]).is_some_and(|(_, name)| name == "noaux_tc") {
        config.set("scoring_func", "sigmoid");
    }
    hyper::default_attention(config)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
    keys.set_u32("leading_dense_block_count", config.u32(&["first_k_dense_replace"])?);
    keys.set_u32("expert_shared_count", config.u32(&["n_shared_experts"])?);
    keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
    keys.set("expert_weights_norm", config.bool("norm_topk_prob")?.unwrap_or(false));
    Ok(())
}

/// What leads back where experts stand beside one that is always asked.
pub(super) fn export_of_routed(model: &Model, exported: Exported) -> Exported {
    let metadata = model.metadata();
    let architecture = metadata.architecture().unwrap_or_default();
    let norm = metadata.bool(&format!("{architecture}.expert_weights_norm"));
    let exported = exported.patterns([experts::ROUTER_BIAS]).patterns(experts::one_by_one());
    match super::exported::count(model, "expert_gating_func") {
        Some(2) => exported.set("scoring_func", "sigmoid"),
        Some(1) => exported.set("scoring_func", "softmax"),
        _ => exported,
    }
    .set_some("norm_topk_prob", norm)
}
