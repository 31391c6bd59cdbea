//! Metadata keys and tensors of `minicpm3`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Required keys of MLA.
pub(crate) const MLA_KEYS: &[&str] =
    &[key::ATTENTION_KV_LORA_RANK, key::ATTENTION_KEY_LENGTH, key::ROPE_DIMENSION_COUNT];

/// KV projections of MLA, with one matrix that expands keys and values; attention output; FFN norm.
pub(crate) const MLA_KV: &[Item] = &[
    Required("attn_kv_a_mqa.weight", "n_embd, kv_rank + n_rot"),
    Required("attn_kv_a_norm.weight", "kv_rank"),
    Required("attn_kv_b.weight", "kv_rank, n_head*head_k + n_head*head_v - n_head*n_rot"),
    Required("attn_output.weight", "n_head*head_v, n_embd"),
    All(FFN_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minicpm3",
    required: &[SIZES, TRANSFORMER, RMS_NORM, MLA_KEYS, &[key::ATTENTION_Q_LORA_RANK]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(LONG_ROPE)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q_a.weight", "n_embd, q_rank"),
        Required("attn_q_a_norm.weight", "q_rank"),
        Required("attn_q_b.weight", "q_rank, n_head*head_k"),
        All(MLA_KV),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
