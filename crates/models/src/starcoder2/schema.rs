//! Metadata keys and tensors of `starcoder2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "starcoder2",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        Required("attn_output.bias", "n_embd"),
        All(FFN_NORM_BIAS),
        All(FFN_BIAS),
    ])],
    ..Architecture::DEFAULT
};
