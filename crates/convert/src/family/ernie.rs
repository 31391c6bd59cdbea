//! Ernie 4.5, dense and with experts, and what reads with it.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::LLAMA_LIKE;
use super::{Exported, Family, Mapping, experts, qwen_vl};
use crate::vocab;

pub(super) static ERNIE4_5: Family = Family {
    classes: &["Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"],
    architecture: "ernie4_5",
    model_type: "ernie4_5",
    vocabulary: vocab::Kind::SentencePieceThenPrefix,
    complete,
    ..Family::DEFAULT
};

pub(super) static ERNIE4_5_MOE: Family = Family {
    classes: &["Ernie4_5_MoeForCausalLM"],
    architecture: "ernie4_5-moe",
    model_type: "ernie4_5_moe",
    vocabulary: vocab::Kind::SentencePieceThenPrefix,
    names: &[experts::BESIDE_SHARED, LLAMA_LIKE],
    fields: &[
        ("expert_count", "moe_num_experts"),
        ("expert_used_count", "moe_k"),
        ("expert_shared_count", "moe_num_shared_experts"),
        ("interleave_moe_layer_step", "moe_layer_interval"),
        ("leading_dense_block_count", "moe_layer_start_index"),
    ],
    complete,
    keys,
    special,
    arranged: experts::gates_first,
    export,
    ..Family::DEFAULT
};

/// PaddleOCR, whose positions have three dimensions.
pub(super) static PADDLEOCR: Family = Family {
    classes: &["PaddleOCRVLForConditionalGeneration"],
    architecture: "paddleocr",
    model_type: "paddleocr_vl",
    export: |model, exported| Some(qwen_vl::sections(model, exported)),
    ..ERNIE4_5
};

/// What is added to scores only to choose experts, in one row.
const ROUTER_BIAS: &str = "model.layers.{}.mlp.moe_statics.e_score_correction_bias";

fn complete(config: &mut Config) -> Result<(), Error> {
    config.default("rms_norm_eps", 1e-5);
    hyper::default_attention(config)
}

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32("expert_count", config.u32(&["moe_num_experts"])?);
    keys.set_u32("expert_used_count", config.u32(&["moe_k"])?);
    keys.set_u32("interleave_moe_layer_step", config.u32(&["moe_layer_interval"])?);
    keys.set_u32("leading_dense_block_count", config.u32(&["moe_layer_start_index"])?);
    let width = config.u32(experts::WIDTH)?;
    keys.set_u32("expert_feed_forward_length", width);
    if let Some(shared) = config.u32(&["moe_num_shared_experts"])? {
        keys.set("expert_shared_count", shared);
        let width = width.filter(|_| shared > 0).map(|width| width.saturating_mul(shared));
        keys.set_u32("expert_shared_feed_forward_length", width);
    }
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    // Layers that predict further tokens, which programs do not use yet.
    if name.starts_with("model.mtp_") {
        return Ok(Some(Mapping::Dropped));
    }
    if let Some(bias) = experts::router_bias(ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    let mut counted = config.clone();
    if let Some(count) = config.u32(&["moe_num_experts"])? {
        counted.set("num_experts", count);
    }
    let width = || config.require_u32(experts::WIDTH, "the width of an expert");
    experts::mapping(&counted, name, width)
}

fn export(_model: &Model, exported: Exported) -> Option<Exported> {
    Some(exported.patterns([ROUTER_BIAS]).patterns(experts::one_by_one()))
}
