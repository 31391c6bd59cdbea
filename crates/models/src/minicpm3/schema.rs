//! Metadata keys and tensors.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::layers;

/// Keys of these.
pub(crate) const KEYS: &[&str] =
    &["attention.kv_lora_rank", "attention.key_length", "rope.dimension_count"];

pub(crate) const UNPACKED: &[Item] = &[
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    Required("attn_kv_b.weight", "kv_rank, n_head*head_k + n_head*head_v - n_head*n_rot"),
    Required("attn_output.weight", "n_head*head_v, n_embd"),
    All(FFN_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minicpm3",
    required: &[SIZES, TRANSFORMER, RMS, KEYS, &["attention.q_lora_rank"]],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(LONG_ROPE)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q_a.weight", "n_embd, q_rank"),
        Required("attn_q_a_norm.weight", "q_rank"),
        Required("attn_q_b.weight", "q_rank, n_head*head_k"),
        All(UNPACKED),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
