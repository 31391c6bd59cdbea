//! Hunyuan 3 with experts: norms of heads, a router by the sigmoid, layers that guess further tokens.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_store::Model;

use super::exported::{count, has};
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table, block_of, captures};
use super::{Exported, Family, Mapping, experts, further};

const NAMES: Table = &[
    ("model.layers.{}.mlp.router.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_mlp.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_mlp.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_mlp.down_proj", "blk.{}.ffn_down_shexp"),
    ("model.layers.{}.final_layernorm", "blk.{}.nextn.shared_head_norm"),
];
const ROUTER_BIAS: &str = "model.layers.{}.mlp.expert_bias";
const SIGMOID: u32 = 2;

pub(super) static HY_V3: Family = Family {
    classes: &["HYV3ForCausalLM"],
    architecture: "hy_v3",
    model_type: "hy_v3",
    pre_tokenizers: &["hy_v3", "hunyuan"],
    names: &[NAMES, experts::BESIDE_SHARED, further::NAMES, LLAMA_LIKE],
    fields: &[
        ("expert_weights_norm", "route_norm"),
        ("expert_weights_scale", "router_scaling_factor"),
    ],
    complete: |config| {
        config.default("rms_norm_eps", 1e-5);
        hyper::default_attention(config)
    },
    keys,
    special,
    export,
    ..Family::DEFAULT
};

fn keys(config: &Config, keys: &mut Keys) -> Result<(), Error> {
    let further = config.u32(&[further::COUNT])?.filter(|&further| further > 0);
    keys.stated(config)?;
    keys.set("block_count", hyper::block_count(config)?.saturating_add(further.unwrap_or(0)));
    let width = config.require_u32(experts::WIDTH, "the feed-forward width of an expert")?;
    let shared = config.u32(&["num_shared_experts"])?.unwrap_or(1);
    keys.set("expert_feed_forward_length", width);
    keys.set("expert_shared_feed_forward_length", width.saturating_mul(shared));
    keys.set("expert_weights_norm", config.bool("route_norm")?.unwrap_or(true));
    keys.set("expert_weights_scale", config.f32(&["router_scaling_factor"])?.unwrap_or(1.0));
    keys.set("expert_gating_func", SIGMOID);
    keys.set_u32("nextn_predict_layers", further);
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let blocks = hyper::block_count(config)?;
    let further = config.u32(&[further::COUNT])?.unwrap_or(0);
    if block_of(name).is_some_and(|block| block >= blocks.saturating_add(further)) {
        return Ok(Some(Mapping::Unknown));
    }
    if let Some(&[block]) = captures(ROUTER_BIAS, name).as_deref() {
        return Ok(Some(Mapping::one(format!("blk.{block}.exp_probs_b"), [])));
    }
    let width = || config.require_u32(experts::WIDTH, "the feed-forward width of an expert");
    experts::mapping(config, name, width)
}

fn export(model: &Model, exported: Exported) -> Option<Exported> {
    let further = count(model, "nextn_predict_layers");
    let blocks = count(model, "block_count")?.checked_sub(further.unwrap_or(0))?;
    let width = count(model, "expert_feed_forward_length").filter(|&width| width > 0)?;
    let shared = count(model, "expert_shared_feed_forward_length")? / width;
    let exported = exported
        .patterns([ROUTER_BIAS])
        .patterns(experts::one_by_one())
        .without(&["block_count"])
        .set("num_hidden_layers", blocks)
        .set("num_shared_experts", shared)
        .set("qk_norm", has(model, "blk.0.attn_q_norm.weight"))
        .set_some(further::COUNT, further);
    Some(exported)
}
