//! Exaone 3 and 3.5, and K-Exaone, with experts; the fourth generation is beside OLMo.

use super::layers;
use crate::schema::architecture::Item::{self, All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

pub(super) static EXAONE: Architecture = Architecture {
    name: "exaone",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, NORM],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

const ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM)];
const EXPERTS_BESIDE_SHARED: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(super) static EXAONE_MOE: Architecture = Architecture {
    name: "exaone-moe",
    note: "K-Exaone. Layers without a window do not rotate.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_feed_forward_length"]],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        ROUTED_KEYS,
        &["vocab_size", "nextn_predict_layers", "expert_shared_feed_forward_length"],
    ],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(ATTENTION), All(EXPERTS_BESIDE_SHARED)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(ATTENTION),
                Maybe(GATED_FFN),
                Maybe(EXPERTS_BESIDE_SHARED),
                Maybe(NEXT_TOKENS),
            ],
        },
    ],
    open: false,
};

pub(super) static HY_V3: Architecture = Architecture {
    name: "hy_v3",
    note: "Hunyuan 3. Layers have a feed-forward network or experts.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_feed_forward_length"]],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &["vocab_size", "nextn_predict_layers", "expert_shared_feed_forward_length"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(ATTENTION), Item::OneOf(&[GATED_FFN, HY_EXPERTS])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(GATED_FFN), Maybe(HY_EXPERTS), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

/// The name of the bias has no end.
const HY_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(super) static HUNYUAN_MOE: Architecture = Architecture {
    name: "hunyuan-moe",
    note: "Experts beside one of full width, which is always asked.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &["expert_feed_forward_length", "expert_shared_feed_forward_length", "expert_shared_count"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(EXPERTS),
        Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
    ])],
    open: false,
};
