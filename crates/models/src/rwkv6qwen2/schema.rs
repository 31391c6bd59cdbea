//! Metadata keys and tensors of `rwkv6qwen2`.

use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// FFN of Qwen2 with its norm.
pub(crate) const FFN_WITH_NORM: &[Item] = &[All(FFN_NORM), All(GATED_FFN)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "rwkv6qwen2",
    note: "Qwen2 with time mixing of RWKV 6 instead of attention, with fewer KV heads than heads.",
    required: &[
        SIZES,
        RMS_NORM,
        &[
            key::FEED_FORWARD_LENGTH,
            key::WKV_HEAD_SIZE,
            key::TIME_MIX_EXTRA_DIM,
            key::TIME_DECAY_EXTRA_DIM,
        ],
    ],
    optional: &[&[key::ATTENTION_HEAD_COUNT, key::ATTENTION_HEAD_COUNT_KV, key::TOKEN_SHIFT_COUNT]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("time_mix_w1.weight", "n_embd, 5*mix_rank"),
        Required("time_mix_w2.weight", "mix_rank, n_embd, 5"),
        Required("time_mix_lerp_x.weight", "n_embd"),
        Required("time_mix_lerp_fused.weight", "n_embd, 1, 1, 5"),
        Optional("time_mix_first.weight", "wkv_head, n_embd/wkv_head"),
        Required("time_mix_decay.weight", "n_embd"),
        Required("time_mix_decay_w1.weight", "n_embd, decay_dim"),
        Required("time_mix_decay_w2.weight", "decay_dim, n_embd"),
        Required("time_mix_key.weight", "n_embd, n_head_kv*wkv_head"),
        Required("time_mix_value.weight", "n_embd, n_head_kv*wkv_head"),
        Required("time_mix_receptance.weight", "n_embd, n_embd"),
        Required("time_mix_gate.weight", "n_embd, n_embd"),
        Optional("time_mix_key.bias", "n_head_kv*wkv_head"),
        Optional("time_mix_value.bias", "n_head_kv*wkv_head"),
        Optional("time_mix_receptance.bias", "n_embd"),
        Required("time_mix_output.weight", "n_embd, n_embd"),
        All(FFN_WITH_NORM),
    ])],
    ..Architecture::DEFAULT
};
