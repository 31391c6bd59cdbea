//! Metadata keys and tensors.

use crate::qwen3moe;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3vlmoe",
    note: "The text model of Qwen 3 VL with experts.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE, &["vocab_size", "n_deepstack_layers", "expert_feed_forward_length"]],
    defaults: qwen3moe::schema::SCHEMA.defaults,
    tensors: qwen3moe::schema::SCHEMA.tensors,
    blocks: qwen3moe::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
