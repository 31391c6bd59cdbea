//! Metadata keys and tensors of `mpt`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mpt",
    note: "The specification lists `attention.alibi_bias_max` and `attention.clip_kqv`; llama.cpp \
           writes and reads `attention.max_alibi_bias` and `attention.clamp_kqv`.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, &[key::ATTENTION_MAX_ALIBI_BIAS, key::ATTENTION_CLAMP_KQV]],
    tensors: &[
        All(EMBEDDING),
        Optional("position_embd.weight", "n_embd, n_ctx"),
        All(OUTPUT_NORM),
        Optional("output_norm.bias", "n_embd"),
        All(TIED_OUTPUT),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Optional("attn_norm.bias", "n_embd"),
        All(FUSED_QKV),
        Optional("attn_qkv.bias", "n_q + n_k + n_v"),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        Optional("attn_q_norm.weight", "n_embd"),
        Optional("attn_q_norm.bias", "n_embd"),
        Optional("attn_k_norm.weight", "n_embd"),
        Optional("attn_k_norm.bias", "n_embd"),
        All(FFN_NORM),
        Optional("ffn_norm.bias", "n_embd"),
        All(FFN),
        Optional("ffn_up.bias", "n_ff"),
        Optional("ffn_down.bias", "n_embd"),
        Optional("ffn.act.scales", "n_ff"),
    ])],
    ..Architecture::DEFAULT
};
