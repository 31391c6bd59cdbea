//! Metadata keys and tensors of `codeshell`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "codeshell",
    note: "GPT-2 with RoPE and grouped-query attention.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(GPT2_LAYER)],
    ..Architecture::DEFAULT
};
