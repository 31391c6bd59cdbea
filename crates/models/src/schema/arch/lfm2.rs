//! LFM2: short convolutions in most layers, attention in some.

use super::layers;
use crate::schema::architecture::Item::{self, All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

/// Layers with heads of keys and values have attention, the others a convolution.
const MIXER: &[Item] = &[
    All(ATTN_NORM),
    When("n_head_kv", &[All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS)]),
    Unless(
        "n_head_kv",
        &[
            Required("shortconv.conv.weight", "l_cache, n_embd"),
            Required("shortconv.in_proj.weight", "n_embd, 3*n_embd"),
            Required("shortconv.out_proj.weight", "n_embd, n_embd"),
        ],
    ),
    All(FFN_NORM),
];
const TENSORS: &[Item] =
    &[All(EMBEDDING), Required("token_embd_norm.weight", "n_embd"), All(TIED_OUTPUT)];
const OWN: &[&str] = &["shortconv.l_cache"];

pub(super) static LFM2: Architecture = Architecture {
    name: "lfm2",
    note: "`token_embd_norm` is the final norm. Layers without heads of keys and values have a convolution. \
           Decoders of sound end in a matrix.",
    required: &[SIZES, TRANSFORMER, RMS, OWN],
    optional: &[
        HEADS,
        ROPE,
        &[
            "vocab_size",
            "attention.causal",
            "pooling_type",
            "attention.sliding_window",
            "embedding_length_out",
        ],
    ],
    defaults: &[],
    tensors: &[
        All(TENSORS),
        When(
            "n_frame",
            &[Required("dense_2.weight", "n_embd, n_frame"), Optional("dense_2.bias", "n_frame")],
        ),
    ],
    blocks: &[layers(&[All(MIXER), All(GATED_FFN)])],
    open: false,
};

pub(super) static LFM2_MOE: Architecture = Architecture {
    name: "lfm2moe",
    note: "As lfm2, with experts.",
    required: &[SIZES, TRANSFORMER, RMS, OWN, EXPERT_KEYS, &["expert_gating_func"]],
    optional: &[
        HEADS,
        ROPE,
        &["vocab_size", "expert_feed_forward_length", "leading_dense_block_count"],
    ],
    defaults: &[],
    tensors: TENSORS,
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(MIXER), All(GATED_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(MIXER), All(EXPERTS), Required("exp_probs_b.bias", "n_expert")],
        },
    ],
    open: false,
};
