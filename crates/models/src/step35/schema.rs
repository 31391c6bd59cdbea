//! Metadata keys and tensors of `step35`.

use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const SHARED_EXPERT: &[Item] = &[
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

/// MoE with a selection bias and a shared expert.
pub(crate) const MOE_WITH_SHARED_EXPERT: &[Item] =
    &[All(EXPERTS), Optional("exp_probs_b.bias", "n_expert"), All(SHARED_EXPERT)];

const ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_q_norm.weight", "head_k"),
    Optional("attn_k_norm.weight", "head_k"),
    Optional("attn_gate.weight", "n_embd, n_head"),
    All(FFN_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "step35",
    note: "RoPE covers whole heads in sliding-window layers, half of a head in the others.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::ATTENTION_SLIDING_WINDOW]],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        DEEPSEEK_MOE_KEYS,
        &[
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
            key::MOE_EVERY_N_LAYERS,
            key::SWIGLU_CLAMP_EXP,
            key::SWIGLU_CLAMP_SHEXP,
            key::NEXTN_PREDICT_LAYERS,
        ],
    ],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(ATTENTION), OneOf(&[GATED_FFN, MOE_WITH_SHARED_EXPERT])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(GATED_FFN), Maybe(MOE_WITH_SHARED_EXPERT), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
