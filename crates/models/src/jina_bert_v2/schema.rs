//! Metadata keys and tensors of `jina-bert-v2`.

use crate::bert::schema::{ATTENTION, FFN_BIASES_AND_NORM, OPTIONAL_KEYS, TOKEN_TYPES};
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "jina-bert-v2",
    note: "Symmetric ALiBi with a maximum bias of 8, without a key; GELU-gated FFN.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: OPTIONAL_KEYS,
    tensors: &[
        All(EMBEDDING),
        All(TOKEN_TYPES),
        All(EMBEDDING_NORM),
        Optional("cls.weight", "n_embd, 1"),
        Optional("cls.bias", "1"),
    ],
    blocks: &[layers(&[
        All(ATTENTION),
        Optional("attn_q_norm.weight", "n_embd"),
        Optional("attn_q_norm.bias", "n_embd"),
        Optional("attn_k_norm.weight", "n_embd"),
        Optional("attn_k_norm.bias", "n_embd"),
        Optional("attn_norm_2.weight", "n_embd"),
        Optional("attn_norm_2.bias", "n_embd"),
        // Older files have a separate gate projection, newer ones fuse it into `ffn_up`, above the
        // up projection.
        Optional("ffn_gate.weight", "n_embd, n_ff"),
        Required("ffn_up.weight", "n_embd, undetermined"),
        Required("ffn_down.weight", "n_ff, n_embd"),
        All(FFN_BIASES_AND_NORM),
    ])],
    ..Architecture::DEFAULT
};
