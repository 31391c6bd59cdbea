//! GLM 4.5 and 4.6: experts, and layers behind the last that guess further tokens.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::dots::export_of_routed;
use super::exported::{count, has, rotated_share};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, experts, further};
use crate::vocab;

const NAMES: Table = &[("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm")];

/// The number of the function by which routers weigh.
const SIGMOID: u32 = 2;

pub(super) static GLM4_MOE: Family = Family {
    classes: &["Glm4MoeForCausalLM", "Glm4vMoeForConditionalGeneration"],
    architecture: "glm4moe",
    model_type: "glm4_moe",
    vocabulary: vocab::Kind::Glm4Moe,
    pre_tokenizers: &["glm4", "chatglm-bpe"],
    names: &[NAMES, further::NAMES, experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: experts::ROUTED_FIELDS,
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        config.default("first_k_dense_replace", 1);
        hyper::default_attention(config)
    },
    keys,
    special: |config, name| experts::routed(config, name),
    export,
    ..Family::DEFAULT
};

/// Solar Open, whose vocabulary is another.
pub(super) static SOLAR_OPEN: Family = Family {
    classes: &["SolarOpenForCausalLM"],
    model_type: "solar_open",
    vocabulary: vocab::Kind::SolarOpen,
    pre_tokenizers: &["solar-open", "qwen2"],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    // It comes back as its sibling.
    export: |_, _| None,
    ..GLM4_MOE
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let further = config.u32(&[further::COUNT])?;
    keys.stated(config)?;
    keys.set("block_count", hyper::block_count(config)?.saturating_add(further.unwrap_or(0)));
    let rotated = hyper::rotated_dims(config, hyper::head_dim(config)?, 0.5)?;
    keys.set("rope.dimension_count", rotated);
    keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
    keys.set_u32("expert_shared_count", config.u32(&["n_shared_experts"])?);
    keys.set_u32("leading_dense_block_count", config.u32(&["first_k_dense_replace"])?);
    keys.set("expert_gating_func", SIGMOID);
    keys.set_f32("expert_weights_scale", config.f32(&["routed_scaling_factor"])?);
    if let Some(norm) = config.bool("norm_topk_prob")? {
        keys.set("expert_weights_norm", norm);
    }
    keys.set_u32("nextn_predict_layers", further);
    Ok(())
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let further = count(model, "nextn_predict_layers");
    let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
    let exported = export_of_routed(model, exported)
        .without(&["block_count"])
        .set("num_hidden_layers", blocks)
        .set_some(further::COUNT, further)
        .set("use_qk_norm", has(model, "blk.0.attn_q_norm.weight"))
        .set("attention_bias", has(model, "blk.0.attn_q.bias"))
        .set_some("partial_rotary_factor", rotated_share(model));
    Some(exported)
}
