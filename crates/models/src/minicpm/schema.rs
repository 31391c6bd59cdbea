//! Metadata keys and tensors.

use crate::granite::schema::SCALES;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key::Absent;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minicpm",
    note: "Without the scales, programs take those of the first models.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, EXPERT_KEYS, SCALES, &["vocab_size", "logit_scale"]],
    defaults: &[("embedding_scale", Absent::Number(12.0))],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
