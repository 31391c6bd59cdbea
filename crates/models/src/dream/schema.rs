//! Metadata keys and tensors.

use crate::qwen2;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dream",
    note: "Unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "pooling_type", "attention.causal"]],
    defaults: qwen2::schema::SCHEMA.defaults,
    tensors: qwen2::schema::SCHEMA.tensors,
    blocks: qwen2::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
