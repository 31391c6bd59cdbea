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

pub(super) static QWEN2VL: Architecture = Architecture {
    name: "qwen2vl",
    note: "The text model of Qwen 2 and 2.5 VL.",
    required: &[SIZES, TRANSFORMER, RMS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size"]],
    defaults: QWEN2.defaults,
    tensors: QWEN2.tensors,
    blocks: QWEN2.blocks,
    open: false,
};

pub(super) static QWEN3VL: Architecture = Architecture {
    name: "qwen3vl",
    note: "The text model of Qwen 3 VL.",
    required: &[SIZES, TRANSFORMER, RMS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE, &["vocab_size", "n_deepstack_layers", "pooling_type"]],
    defaults: QWEN3.defaults,
    tensors: QWEN3.tensors,
    blocks: QWEN3.blocks,
    open: false,
};

pub(super) static QWEN3VLMOE: Architecture = Architecture {
    name: "qwen3vlmoe",
    note: "The text model of Qwen 3 VL with experts.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE, &["vocab_size", "n_deepstack_layers", "expert_feed_forward_length"]],
    defaults: QWEN3MOE.defaults,
    tensors: QWEN3MOE.tensors,
    blocks: QWEN3MOE.blocks,
    open: false,
};

pub(super) static DREAM: Architecture = Architecture {
    name: "dream",
    note: "Unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "pooling_type", "attention.causal"]],
    defaults: QWEN2.defaults,
    tensors: QWEN2.tensors,
    blocks: QWEN2.blocks,
    open: false,
};

pub(super) static RND1: Architecture = Architecture {
    name: "rnd1",
    note: "Unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &["expert_feed_forward_length", "attention.causal"]],
    defaults: QWEN3MOE.defaults,
    tensors: QWEN3MOE.tensors,
    blocks: QWEN3MOE.blocks,
    open: false,
};

pub(super) static LLADA_MOE: Architecture = Architecture {
    name: "llada-moe",
    note: "Unmasks tokens in any order.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &["expert_feed_forward_length", "attention.causal"]],
    defaults: QWEN3MOE.defaults,
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: QWEN3MOE.blocks,
    open: false,
};

pub(super) static QWEN: Architecture = Architecture {
    name: "qwen",
    note: "The first. `feed_forward_length` counts gate and input together.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, NORM],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV_BIAS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        Required("ffn_gate.weight", "n_embd, n_ff/2"),
        Required("ffn_up.weight", "n_embd, n_ff/2"),
        Required("ffn_down.weight", "n_ff/2, n_embd"),
    ])],
    open: false,
};
