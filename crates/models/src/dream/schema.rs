//! Metadata keys and tensors of `dream`.

use crate::qwen2;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dream",
    note: "A masked diffusion language model: unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::POOLING_TYPE, key::ATTENTION_CAUSAL]],
    defaults: qwen2::schema::SCHEMA.defaults,
    tensors: qwen2::schema::SCHEMA.tensors,
    blocks: qwen2::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
