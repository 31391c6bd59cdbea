//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nanbeige",
    note: "As llama, the layers run through several times.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "num_loops", "skip_loop_final_norm"]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
