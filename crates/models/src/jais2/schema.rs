//! Metadata keys and tensors of `jais2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "jais2",
    note: "The FFN has no gate; its activation is squared ReLU.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT_BIAS),
        All(FFN_NORM_BIAS),
        All(FFN_BIAS),
    ])],
    ..Architecture::DEFAULT
};
