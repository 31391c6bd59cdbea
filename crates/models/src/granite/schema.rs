//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) const SCALES: &[&str] = &["residual_scale", "embedding_scale", "attention.scale"];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granite",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[HEADS, ROPE, EXPERT_KEYS, SCALES, &["vocab_size", "deepstack_mapping"]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
