//! Step 3.5, MiMo V2 and Laguna: layers with a window have heads of their own.

use super::layers;
use crate::schema::architecture::Item::{self, All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

const SHARED_EXPERT: &[Item] = &[
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
const EXPERTS_BESIDE: &[Item] =
    &[All(EXPERTS), Optional("exp_probs_b.bias", "n_expert"), All(SHARED_EXPERT)];

const STEP_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Optional("attn_q_norm.weight", "head_k"),
    Optional("attn_k_norm.weight", "head_k"),
    Optional("attn_gate.weight", "n_embd, n_head"),
    All(FFN_NORM),
];

pub(super) static STEP35: Architecture = Architecture {
    name: "step35",
    note: "Of a head all rotates in layers with a window, half of it in the others.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["attention.sliding_window"]],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        ROUTED_KEYS,
        &[
            "expert_shared_feed_forward_length",
            "moe_every_n_layers",
            "swiglu_clamp_exp",
            "swiglu_clamp_shexp",
            "nextn_predict_layers",
        ],
    ],
    defaults: &[],
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
            items: &[All(STEP_ATTENTION), OneOf(&[GATED_FFN, EXPERTS_BESIDE])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(STEP_ATTENTION),
                Maybe(GATED_FFN),
                Maybe(EXPERTS_BESIDE),
                Maybe(NEXT_TOKENS),
            ],
        },
    ],
    open: false,
};

const MIMO_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    Required("attn_output.weight", "n_head*head_v, n_embd"),
    Optional("attn_sinks.weight", "n_head"),
    All(FFN_NORM),
];
const MIMO_EXPERTS: &[Item] = &[All(EXPERTS), Optional("exp_probs_b.bias", "n_expert")];

pub(super) static MIMO2: Architecture = Architecture {
    name: "mimo2",
    note: "Values are narrower than keys.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["attention.sliding_window"]],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        ROUTED_KEYS,
        &["attention.value_scale", "nextn_predict_layers"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(MIMO_ATTENTION), OneOf(&[GATED_FFN, MIMO_EXPERTS])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(MIMO_ATTENTION),
                Maybe(GATED_FFN),
                Maybe(MIMO_EXPERTS),
                Maybe(NEXT_TOKENS),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    open: false,
};

pub(super) static LAGUNA: Architecture = Architecture {
    name: "laguna",
    note: "What attention gives is gated, by head or by element.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &["leading_dense_block_count", "expert_feed_forward_length"],
    ],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        ROUTED_KEYS,
        &["vocab_size", "expert_shared_feed_forward_length", "rope.dimension_count_swa"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(HEAD_NORMS),
        Required("attn_gate.weight", "n_embd, untold"),
        All(FFN_NORM),
        OneOf(&[GATED_FFN, EXPERTS_BESIDE]),
    ])],
    open: false,
};
