//! Metadata keys and tensors of `bert`.

use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) const OPTIONAL_KEYS: &[&[&str]] =
    &[HEADS, &["attention.causal", "pooling_type", "classifier.output_labels", "vocab_size"]];

pub(crate) const TOKEN_TYPES: &[Item] = &[Optional("token_types.weight", "n_embd, n_token_types")];

pub(crate) const ATTENTION: &[Item] = &[
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_output.bias", "n_embd"),
    Required("attn_output_norm.weight", "n_embd"),
    Required("attn_output_norm.bias", "n_embd"),
];

/// Biases of the FFN and the layer norm after it, for any form of the FFN.
pub(crate) const FFN_BIASES_AND_NORM: &[Item] = &[
    Optional("ffn_up.bias", "n_ff"),
    Optional("ffn_down.bias", "n_embd"),
    Required("layer_output_norm.weight", "n_embd"),
    Required("layer_output_norm.bias", "n_embd"),
];

pub(crate) const FEED_FORWARD: &[Item] = &[All(FFN), All(FFN_BIASES_AND_NORM)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bert",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: OPTIONAL_KEYS,
    tensors: &[
        All(EMBEDDING),
        All(TOKEN_TYPES),
        All(POSITION_EMBEDDING),
        All(EMBEDDING_NORM),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.bias", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[All(ATTENTION), All(FEED_FORWARD)])],
    ..Architecture::DEFAULT
};
