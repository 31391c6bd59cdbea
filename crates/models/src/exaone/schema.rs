//! Metadata keys and tensors of `exaone`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "exaone",
    note: "EXAONE 3 and 3.5.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, LAYER_NORM],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
