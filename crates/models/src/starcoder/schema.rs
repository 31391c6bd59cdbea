//! Metadata keys and tensors of `starcoder`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "starcoder",
    note: "Also SantaCoder: gpt2, in most models with MQA.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS],
    tensors: &[All(EMBEDDING), All(POSITION_EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT2_LAYER)],
    ..Architecture::DEFAULT
};
