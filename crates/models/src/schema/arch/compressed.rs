//! MiniCPM 3 and PLM: keys and values are compressed, and unpacked by one matrix.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, Required};
use crate::schema::groups::*;

/// Keys of these.
const KEYS: &[&str] = &["attention.kv_lora_rank", "attention.key_length", "rope.dimension_count"];
const UNPACKED: &[Item] = &[
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    Required("attn_kv_b.weight", "kv_rank, n_head*head_k + n_head*head_v - n_head*n_rot"),
    Required("attn_output.weight", "n_head*head_v, n_embd"),
    All(FFN_NORM),
];

pub(super) static MINICPM3: Architecture = Architecture {
    name: "minicpm3",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, KEYS, &["attention.q_lora_rank"]],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(LONG_ROPE)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q_a.weight", "n_embd, q_rank"),
        Required("attn_q_a_norm.weight", "q_rank"),
        Required("attn_q_b.weight", "q_rank, n_head*head_k"),
        All(UNPACKED),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static PLM: Architecture = Architecture {
    name: "plm",
    note: "Feed-forward without a gate, by the square of what is positive.",
    required: &[SIZES, TRANSFORMER, RMS, KEYS, &["attention.value_length"]],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q.weight", "n_embd, n_head*head_k"),
        All(UNPACKED),
        All(FFN),
    ])],
    open: false,
};
