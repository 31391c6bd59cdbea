//! Metadata keys and tensors of `rnd1`.

use crate::qwen3moe;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rnd1",
    note: "Diffusion language model: bidirectional attention, which unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &[key::EXPERT_FEED_FORWARD_LENGTH, key::ATTENTION_CAUSAL]],
    defaults: qwen3moe::schema::SCHEMA.defaults,
    tensors: qwen3moe::schema::SCHEMA.tensors,
    blocks: qwen3moe::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
