//! Metadata keys and tensors of `phi2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "phi2",
    note: "Attention and FFN run in parallel on the same normalized input.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(OUTPUT),
        Required("output.bias", "n_vocab"),
    ],
    blocks: &[layers(&[All(ATTN_NORM_BIAS), All(QKV), All(ATTN_OUTPUT_BIAS), All(FFN_BIAS)])],
    ..Architecture::DEFAULT
};
