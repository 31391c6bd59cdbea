//! Metadata keys and tensors of `nanbeige`.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nanbeige",
    note: "As llama, but the layers run `num_loops` times.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::NUM_LOOPS, key::SKIP_LOOP_FINAL_NORM]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
