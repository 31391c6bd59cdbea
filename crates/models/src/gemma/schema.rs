//! Metadata keys and tensors of `gemma`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma",
    note: "First generation of Gemma.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
