//! Qwen2 and Qwen3 with experts.

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_models::schema::Hyper;
use gguf_store::Model;

use super::exported::has;
use super::hyper::{self, Keys};
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, Mapping, experts, windows};

/// What stands beside the experts. Only Qwen2 has one that is always asked.
pub(super) const EXPERT_NAMES: Table = &[
    ("model.layers.{}.mlp.gate", "blk.{}.ffn_gate_inp"),
    ("model.layers.{}.mlp.shared_expert_gate", "blk.{}.ffn_gate_inp_shexp"),
    ("model.layers.{}.mlp.shared_expert.gate_proj", "blk.{}.ffn_gate_shexp"),
    ("model.layers.{}.mlp.shared_expert.up_proj", "blk.{}.ffn_up_shexp"),
    ("model.layers.{}.mlp.shared_expert.down_proj", "blk.{}.ffn_down_shexp"),
];

const FIELDS: &[(&str, &str)] =
    &[("expert_shared_feed_forward_length", "shared_expert_intermediate_size")];

const WEIGHTS_NORM: &str = "expert_weights_norm";
const EXPERT_WIDTH: &[&str] = &["moe_intermediate_size"];

pub(super) static QWEN2MOE: Family = Family {
    classes: &["Qwen2MoeForCausalLM"],
    architecture: "qwen2moe",
    model_type: "qwen2_moe",
    pre_tokenizers: &["qwen2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    fields: FIELDS,
    complete: |config| {
        config.default("shared_expert_intermediate_size", 5632);
        complete(config, 1408, 4)
    },
    keys: |config, keys| {
        self::keys(config, keys, false)?;
        windows::qwen(keys, config, |layer, count| layer % 2 == 0 && layer < count)
    },
    special,
    export: |model, exported| {
        let has_bias = has(model, "blk.0.attn_q.bias");
        Some(export_of(model, exported, false).set("qkv_bias", has_bias))
    },
    ..Family::DEFAULT
};

pub(super) static QWEN3MOE: Family = Family {
    classes: &["Qwen3MoeForCausalLM"],
    architecture: "qwen3moe",
    model_type: "qwen3_moe",
    pre_tokenizers: &["qwen2"],
    names: &[EXPERT_NAMES, LLAMA_LIKE],
    fields: FIELDS,
    expects: &[("attention_bias", false)],
    complete: |config| complete(config, 768, 8),
    keys: |config, keys| {
        self::keys(config, keys, true)?;
        windows::qwen(keys, config, |_, _| true)
    },
    special,
    export: |model, exported| Some(export_of(model, exported, true)),
    ..Family::DEFAULT
};

/// `width` is that of an expert, `asked` how many are used for a token, unless stated.
fn complete(config: &mut Config, width: u32, asked: u32) -> Result<(), Error> {
    config.default(EXPERT_WIDTH[0], width);
    config.default("num_experts_per_tok", asked);
    config.default("rms_norm_eps", 1e-6);
    hyper::default_attention(config)
}

/// `usual` is whether programs make the weights of the experts of a token sum to 1, where no key says it.
fn keys(config: &Config, keys: &mut Keys, usual: bool) -> Result<(), Error> {
    keys.stated(config)?;
    keys.set_u32("expert_feed_forward_length", config.u32(EXPERT_WIDTH)?);
    let shared = config.u32(&["shared_expert_intermediate_size"])?;
    keys.set_u32("expert_shared_feed_forward_length", shared);
    // What is not stated is false, in both classes.
    let stated = config.bool("norm_topk_prob")?.unwrap_or(false);
    if stated != usual {
        keys.set(WEIGHTS_NORM, stated);
    }
    Ok(())
}

fn special(config: &Config, name: &str) -> Result<Option<Mapping>, Error> {
    let width = || config.require_u32(EXPERT_WIDTH, "the feed-forward width of an expert");
    experts::mapping(config, name, width)
}

fn export_of(model: &Model, exported: Exported, usual: bool) -> Exported {
    let stated = Hyper::of(model.metadata()).ok().and_then(|of| of.stated(WEIGHTS_NORM)?.to_bool());
    let exported = exported.patterns(experts::one_by_one());
    windows::export_of_qwen(model, exported).set("norm_topk_prob", stated.unwrap_or(usual))
}
