//! Metadata keys and tensors of `bitnet`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bitnet",
    note: "The elements of a matrix have three values.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_sub_norm.weight", "n_embd"),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        Required("ffn_sub_norm.weight", "n_ff"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
