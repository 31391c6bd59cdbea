//! Metadata keys and tensors of `paddleocr`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "paddleocr",
    note: "As ernie4_5, with M-RoPE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(SWIGLU_LAYER)],
    ..Architecture::DEFAULT
};
