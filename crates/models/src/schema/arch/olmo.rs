//! OLMo.

use super::layers;
use crate::schema::architecture::Item::{self, All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
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

pub(super) static OLMOE: Architecture = Architecture {
    name: "olmoe",
    note: "The weights of the experts of a token do not sum to 1.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(FFN_NORM),
        All(LLAMA_EXPERTS),
    ])],
    open: false,
};

pub(super) static EXAONE4: Architecture = Architecture {
    name: "exaone4",
    note: "Norms follow attention and feed-forward. Where there are windows, only their layers rotate.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size", "nextn_predict_layers"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_trunk", items: EXAONE4_LAYER },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(EXAONE4_LAYER), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

const EXAONE4_LAYER: &[Item] =
    &[All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(GATED_FFN), All(POST_NORMS)];
