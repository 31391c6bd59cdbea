//! Metadata keys and tensors of `qwen3vl`.

use crate::qwen3;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3vl",
    note: "Text model of Qwen3-VL.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::N_DEEPSTACK_LAYERS, key::POOLING_TYPE]],
    defaults: qwen3::schema::SCHEMA.defaults,
    tensors: qwen3::schema::SCHEMA.tensors,
    blocks: qwen3::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
