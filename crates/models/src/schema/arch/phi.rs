//! Phi.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

pub(super) static PHI2: Architecture = Architecture {
    name: "phi2",
    note: "Attention and feed-forward share one norm.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(OUTPUT),
        Required("output.bias", "n_vocab"),
    ],
    blocks: &[layers(&[All(ATTN_NORM_BIAS), All(QKV), All(ATTN_OUTPUT_BIAS), All(FFN_BIAS)])],
    open: false,
};

pub(super) static PHI3: Architecture = Architecture {
    name: "phi3",
    note: "Also Phi 4.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(LONG_ROPE)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    open: false,
};

pub(super) static PHIMOE: Architecture = Architecture {
    name: "phimoe",
    note: "Phi 3.5 with experts.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, WINDOW],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(OUTPUT),
        Required("output.bias", "n_vocab"),
        All(LONG_ROPE),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT_BIAS),
        All(FFN_NORM_BIAS),
        All(LLAMA_EXPERTS),
    ])],
    open: false,
};
