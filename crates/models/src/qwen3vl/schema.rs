//! Metadata keys and tensors.

use crate::qwen3;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3vl",
    note: "The text model of Qwen 3 VL.",
    required: &[SIZES, TRANSFORMER, RMS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE, &["vocab_size", "n_deepstack_layers", "pooling_type"]],
    defaults: qwen3::schema::SCHEMA.defaults,
    tensors: qwen3::schema::SCHEMA.tensors,
    blocks: qwen3::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
