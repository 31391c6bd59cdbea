//! Arctic: a dense network beside experts, each behind a norm of its own.

use gguf_store::Model;

use super::hyper;
use super::names::{LLAMA_LIKE, Table};
use super::{Exported, Family, llama};
use crate::vocab;

const NAMES: Table = &[
    ("model.layers.{}.residual_layernorm", "blk.{}.ffn_norm"),
    ("model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm_exps"),
    ("model.layers.{}.residual_mlp.w1", "blk.{}.ffn_gate"),
    ("model.layers.{}.residual_mlp.w2", "blk.{}.ffn_down"),
    ("model.layers.{}.residual_mlp.w3", "blk.{}.ffn_up"),
    ("model.layers.{}.block_sparse_moe.gate", "blk.{}.ffn_gate_inp"),
];

pub(super) static ARCTIC: Family = Family {
    classes: &["ArcticForCausalLM"],
    architecture: "arctic",
    model_type: "arctic",
    vocabulary: vocab::Kind::Arctic,
    names: &[NAMES, LLAMA_LIKE],
    fields: &[("expert_count", "num_local_experts")],
    keys: |config, keys| {
        keys.stated(config)?;
        keys.vocab_size(config)?;
        keys.set("rope.dimension_count", hyper::width(config)? / hyper::head_count(config)?.max(1));
        Ok(())
    },
    special: llama::experts_of_mixtral,
    steps: hyper::llama_order,
    export: |_: &Model, exported: Exported| Some(exported.patterns(llama::patterns_of_mixtral())),
    ..Family::DEFAULT
};
