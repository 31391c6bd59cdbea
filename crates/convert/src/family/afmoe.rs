//! Arcee Trinity: gated attention, norms on both sides, experts beside one that is always asked.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, Mapping, experts, exported, windows};
use crate::vocab;

const NAMES: Table = &[
    ("model.layers.{}.self_attn.gate_proj", "blk.{}.attn_gate"),
    ("model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"),
    ("model.layers.{}.pre_mlp_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_mlp_layernorm", "blk.{}.post_ffw_norm"),
    ("model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_experts.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_experts.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_experts.down_proj", "blk.{}.ffn_down_shexp"),
];
const ROUTER_BIAS: &str = "model.layers.{}.mlp.expert_bias";

pub(super) static AFMOE: Family = Family {
    classes: &["AfmoeForCausalLM"],
    architecture: "afmoe",
    model_type: "afmoe",
    vocabulary: vocab::Kind::Llama,
    pre_tokenizers: &["afmoe"],
    names: &[NAMES, LLAMA_LIKE],
    fields: &[
        ("expert_shared_count", "num_shared_experts"),
        ("leading_dense_block_count", "num_dense_layers"),
        ("expert_weights_norm", "route_norm"),
        ("expert_weights_scale", "route_scale"),
        ("expert_group_count", "n_group"),
        ("expert_group_used_count", "topk_group"),
    ],
    expects: &[("mup_enabled", true), ("attention_bias", false)],
    complete: |config| {
        config.default("head_dim", 128);
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    keys,
    special,
    arranged: experts::gates_first,
    computed: hyper::rope_freqs,
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    keys.llama_like(config, hyper::stated_head_dim(config)?)?;
    keys.set_u32("expert_shared_count", config.u32(&["num_shared_experts"])?);
    keys.set_u32("expert_feed_forward_length", config.u32(experts::WIDTH)?);
    keys.set_u32("leading_dense_block_count", config.u32(&["num_dense_layers"])?);
    if let Some(norm) = config.bool("route_norm")? {
        keys.set("expert_weights_norm", norm);
    }
    keys.set_f32("expert_weights_scale", config.f32(&["route_scale"])?);
    if let Some(window) = config.u32(&["sliding_window"])? {
        keys.set("attention.sliding_window", window);
        windows::unusual_pattern(keys, config, 4)?;
    }
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    if let Some(bias) = experts::router_bias(ROUTER_BIAS, name) {
        return Ok(Some(bias));
    }
    let width = || config.require_u32(experts::WIDTH, "the width of an expert");
    experts::mapping(config, name, width)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let function = match exported::count(model, "expert_gating_func") {
        Some(2) => Some("sigmoid"),
        Some(1) => Some("softmax"),
        _ => None,
    };
    let exported = exported
        .patterns([ROUTER_BIAS])
        .patterns(experts::one_by_one())
        .set("mup_enabled", true)
        .set_some("score_func", function);
    Some(windows::export_of_pattern(model, exported))
}
