//! Metadata keys and tensors of `gpt2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gpt2",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    tensors: &[All(EMBEDDING), All(POSITION_EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT2_LAYER)],
    ..Architecture::DEFAULT
};
