//! Metadata keys and tensors of `qwen3vlmoe`.

use crate::qwen3moe;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3vlmoe",
    note: "Text model of Qwen3-VL with MoE layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[
        HEADS,
        ROPE,
        &[key::VOCAB_SIZE, key::N_DEEPSTACK_LAYERS, key::EXPERT_FEED_FORWARD_LENGTH],
    ],
    defaults: qwen3moe::schema::SCHEMA.defaults,
    tensors: qwen3moe::schema::SCHEMA.tensors,
    blocks: qwen3moe::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
