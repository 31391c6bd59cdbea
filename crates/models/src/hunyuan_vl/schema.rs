//! Metadata keys and tensors of `hunyuan_vl`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hunyuan_vl",
    note: "As hunyuan-dense, with RoPE over four position dimensions (XD-RoPE).",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::ROPE_DIMENSION_SECTIONS, key::ROPE_SCALING_ALPHA]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(SWIGLU_LAYER), All(QK_NORMS)])],
    ..Architecture::DEFAULT
};
