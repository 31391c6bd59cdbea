//! OLMo.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

pub(super) static OLMO: Architecture = Architecture {
    name: "olmo",
    note: "The norms have no weights.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["attention.clamp_kqv"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static OLMO2: Architecture = Architecture {
    name: "olmo2",
    note: "Norms follow attention and feed-forward instead of preceding them.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    open: false,
};
