//! Bert: encoders for embeddings.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, Optional, Required};
use crate::schema::groups::*;

const OPTIONAL: &[&[&str]] =
    &[HEADS, &["attention.causal", "pooling_type", "classifier.output_labels", "vocab_size"]];
const TYPES: &[Item] = &[Optional("token_types.weight", "n_embd, n_token_types")];
const ATTENTION: &[Item] = &[
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    Required("attn_output_norm.weight", "n_embd"),
    Required("attn_output_norm.bias", "n_embd"),
];
const FEED_FORWARD: &[Item] = &[
    All(FFN),
    Optional("ffn_up.bias", "n_ff"),
    Optional("ffn_down.bias", "n_embd"),
    Required("layer_output_norm.weight", "n_embd"),
    Required("layer_output_norm.bias", "n_embd"),
];

pub(super) static BERT: Architecture = Architecture {
    name: "bert",
    note: "",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: OPTIONAL,
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(TYPES),
        All(POSITIONS),
        All(EMBEDDING_NORM),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.bias", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[All(ATTENTION), All(FEED_FORWARD)])],
    open: false,
};

pub(super) static NOMIC_BERT: Architecture = Architecture {
    name: "nomic-bert",
    note: "Rotary positions, feed-forward with a gate.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &["attention.causal", "pooling_type", "vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[
        All(ATTENTION),
        Required("ffn_gate.weight", "n_embd, n_ff"),
        All(FEED_FORWARD),
    ])],
    open: false,
};
