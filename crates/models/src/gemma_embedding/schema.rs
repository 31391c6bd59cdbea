//! Metadata keys and tensors.

use crate::gemma2::schema::SOFT_CAPS;
use crate::gemma3::schema::GEMMA3_LAYER;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::key::Absent;
use crate::schema::layers;

/// The layers after pooling, by the folders of their modules.
const DENSE_KEYS: &[&str] =
    &["dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out"];

pub(crate) static SCHEMA: Architecture = Architecture {
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
    ..Architecture::DEFAULT
};
