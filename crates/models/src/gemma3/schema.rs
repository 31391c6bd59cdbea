//! Metadata keys and tensors of `gemma3`.

use crate::gemma2::schema::SOFT_CAPS;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

pub(crate) const GEMMA3_LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    All(QK_NORMS),
    All(FFN_NORM),
    All(GATED_FFN),
    All(POST_NORMS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma3",
    note: "Five of six layers have a sliding window; RoPE scaling applies to the others only.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, SOFT_CAPS],
    defaults: &[(key::ROPE_FREQ_BASE_SWA, DefaultValue::Number(10000.0))],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    ..Architecture::DEFAULT
};
