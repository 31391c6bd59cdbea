//! Metadata keys and tensors of `granite_swa`.

use crate::schema::architecture::Item::{All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granite_swa",
    note: "As granite or granitemoe, with sliding-window attention and attention sinks. Gate \
           and up projections of experts are fused.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, WINDOW_KEYS],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        EXPERT_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_SCALE,
            key::ATTENTION_ROPE_PATTERN,
            key::EMBEDDING_SCALE,
            key::RESIDUAL_SCALE,
            key::LOGIT_SCALE,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
        ],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_sinks.weight", "n_head"),
        All(FFN_NORM),
        Unless("n_expert", GATED_FFN),
        When("n_expert", FUSED_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};

/// Required key of sliding-window attention.
pub(crate) const WINDOW_KEYS: &[&str] = &[key::ATTENTION_SLIDING_WINDOW];

/// MoE with fused gate and up projections, and an optional shared expert.
const FUSED_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_up_exps.weight", "n_embd, 2*n_ff, n_expert"),
    Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    Optional("ffn_up_shexp.weight", "n_embd, 2*n_ff_shared"),
    Optional("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
