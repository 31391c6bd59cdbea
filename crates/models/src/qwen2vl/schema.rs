//! Metadata keys and tensors of `qwen2vl`.

use crate::qwen2;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen2vl",
    note: "Text model of Qwen2-VL and Qwen2.5-VL.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE]],
    defaults: qwen2::schema::SCHEMA.defaults,
    tensors: qwen2::schema::SCHEMA.tensors,
    blocks: qwen2::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
