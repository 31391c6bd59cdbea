//! Models of which conversion writes values of tensors as keys, or changes matrices by what they hold.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

pub(super) static APERTUS: Architecture = Architecture {
    name: "apertus",
    note: "The activation has parameters of its own in each layer: the keys `xielu.*`.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(ROPE_FACTORS)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(HEAD_NORMS),
        All(FFN_NORM),
        All(FFN),
    ])],
    open: false,
};

pub(super) static TALKIE: Architecture = Architecture {
    name: "talkie",
    note: "Norms have no weights. Each head of queries has a gain, and each layer adds the embeddings again.",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_output.scale", "1"),
        Required("attn_q_norm.weight", "1, n_head"),
        All(GATED_FFN),
        Required("ffn_down.scale", "1"),
        Required("layer_output_scale.weight", "1"),
    ])],
    open: false,
};

pub(super) static BITNET: Architecture = Architecture {
    name: "bitnet",
    note: "The elements of a matrix have three values.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
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
    open: false,
};
