//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "codeshell",
    note: "gpt2 with rotary positions and shared heads of keys and values.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    ..Architecture::DEFAULT
};
