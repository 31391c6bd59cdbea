//! Qwen.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;

pub(super) static QWEN2: Architecture = Architecture {
    name: "qwen2",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size", "pooling_type"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("output.bias", "n_vocab"),
    ],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static QWEN2MOE: Architecture = Architecture {
    name: "qwen2moe",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        &["vocab_size", "expert_feed_forward_length", "expert_shared_feed_forward_length"],
        &["expert_weights_norm"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(EXPERTS),
        Required("ffn_gate_inp_shexp.weight", "n_embd"),
        Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
    ])],
    open: false,
};

pub(super) static QWEN3: Architecture = Architecture {
    name: "qwen3",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size", "pooling_type", "classifier.output_labels"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("cls.output.weight", "n_embd, n_classes"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(HEAD_NORMS),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static QWEN3MOE: Architecture = Architecture {
    name: "qwen3moe",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        &["vocab_size", "expert_feed_forward_length", "expert_weights_norm"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(HEAD_NORMS),
        All(FFN_NORM),
        All(EXPERTS),
    ])],
    open: false,
};
