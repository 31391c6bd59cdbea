//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) const SCALES: &[&str] =
    &[key::RESIDUAL_SCALE, key::EMBEDDING_SCALE, key::ATTENTION_SCALE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granite",
    required: &[SIZES, TRANSFORMER, RMS, &[key::LOGIT_SCALE]],
    optional: &[HEADS, ROPE, EXPERT_KEYS, SCALES, &[key::VOCAB_SIZE, key::DEEPSTACK_MAPPING]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
