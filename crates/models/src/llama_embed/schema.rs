//! Metadata keys and tensors of `llama-embed`.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "llama-embed",
    note: "Embedding models: as llama, with bidirectional attention.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, EXPERT_KEYS, &[key::VOCAB_SIZE, key::POOLING_TYPE]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
