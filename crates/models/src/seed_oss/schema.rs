//! Metadata keys and tensors of `seed_oss`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "seed_oss",
    note: "The norm before the FFN is `post_attention_norm`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("post_attention_norm.weight", "n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
