//! Metadata keys and tensors.

use crate::qwen3moe;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rnd1",
    note: "Unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &[key::EXPERT_FEED_FORWARD_LENGTH, key::ATTENTION_CAUSAL]],
    defaults: qwen3moe::schema::SCHEMA.defaults,
    tensors: qwen3moe::schema::SCHEMA.tensors,
    blocks: qwen3moe::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
