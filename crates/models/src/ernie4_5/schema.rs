//! Metadata keys and tensors of `ernie4_5`.

use crate::schema::architecture::Item::{All, Optional};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "ernie4_5",
    note: "ERNIE 4.5, dense models.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::ROPE_DIMENSION_SECTIONS]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(LAYER)],
    ..Architecture::DEFAULT
};

pub(crate) const ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    All(FFN_NORM),
];

pub(crate) const LAYER: &[Item] = &[All(ATTENTION), All(GATED_FFN)];
