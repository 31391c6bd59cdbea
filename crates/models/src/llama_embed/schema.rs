//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "llama-embed",
    note: "Llama without a mask, as an encoder.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, EXPERT_KEYS, &["vocab_size", "pooling_type"]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
