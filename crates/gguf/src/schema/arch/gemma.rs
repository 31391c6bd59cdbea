//! Gemma. The output matrix is the token embedding, except in some models derived from Gemma 3.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, Optional};
use crate::schema::groups::*;
use crate::schema::key::Absent;

const SOFT_CAPS: &[&str] = &["attn_logit_softcapping", "final_logit_softcapping"];

pub(super) static GEMMA: Architecture = Architecture {
    name: "gemma",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static GEMMA2: Architecture = Architecture {
    name: "gemma2",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS],
    defaults: &[
        ("attn_logit_softcapping", Absent::Number(50.0)),
        ("final_logit_softcapping", Absent::Number(30.0)),
        ("attention.sliding_window", Absent::Size("4096")),
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    open: false,
};

const GEMMA3_LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    All(HEAD_NORMS),
    All(FFN_NORM),
    All(GATED_FFN),
    All(POST_NORMS),
];

pub(super) static GEMMA3: Architecture = Architecture {
    name: "gemma3",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS],
    defaults: &[("rope.freq_base_swa", Absent::Number(10000.0))],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    open: false,
};

/// The layers after pooling, by the folders of their modules.
const DENSE_KEYS: &[&str] =
    &["dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out"];

pub(super) static GEMMA_EMBEDDING: Architecture = Architecture {
    name: "gemma-embedding",
    note: "Gemma 3 as an encoder: tokens see those on both sides, half a window away at most.",
    required: &[SIZES, TRANSFORMER, RMS, &["attention.sliding_window"]],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS, DENSE_KEYS, &["attention.causal", "pooling_type"]],
    defaults: &[
        ("rope.freq_base_swa", Absent::Number(10000.0)),
        ("attention.causal", Absent::Flag(false)),
    ],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    open: false,
};
