//! Command R and Command R7B.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

pub(super) static COMMAND_R: Architecture = Architecture {
    name: "command-r",
    note: "Attention and feed-forward share one norm; models of 64 layers and more have norms of \
           queries and keys.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["vocab_size", "logit_scale"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(EACH_HEAD_NORMS),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static COHERE2: Architecture = Architecture {
    name: "cohere2",
    note: "Attention and feed-forward share one norm; of four layers the last has no window and \
           does not rotate.",
    required: &[SIZES, TRANSFORMER, NORM, &["logit_scale", "attention.sliding_window"]],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(GATED_FFN),
    ])],
    open: false,
};
