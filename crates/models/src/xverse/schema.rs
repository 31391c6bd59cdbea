//! Metadata keys and tensors of `xverse`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "xverse",
    note: "The rows of queries and keys are permuted for interleaved RoPE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::TENSOR_DATA_LAYOUT]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(SWIGLU_LAYER)],
    ..Architecture::DEFAULT
};
