//! Metadata keys and tensors of `qwen2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen2",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE, key::POOLING_TYPE]],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("output.bias", "n_vocab"),
    ],
    blocks: &[layers(SWIGLU_LAYER)],
    ..Architecture::DEFAULT
};
