//! Metadata keys and tensors of `olmo2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "olmo2",
    note: "Norms follow attention and FFN instead of preceding them.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    ..Architecture::DEFAULT
};
