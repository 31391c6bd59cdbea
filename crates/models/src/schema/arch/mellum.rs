//! Windows in some layers: Mellum 2, Maple and SmallThinker, with experts in every layer, Granite and
//! Cohere's second generation, with experts or without, and Spark X2.5.

use super::layers;
use crate::schema::architecture::Item::{self, All, Maybe, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

pub(super) static MELLUM: Architecture = Architecture {
    name: "mellum",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size", "expert_feed_forward_length"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
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

pub(super) static MAPLE: Architecture = Architecture {
    name: "maple",
    note: "Layers without a window do not rotate.",
    required: MELLUM.required,
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        &["vocab_size", "expert_feed_forward_length", "swiglu_clamp_exp"],
    ],
    defaults: &[],
    tensors: MELLUM.tensors,
    blocks: MELLUM.blocks,
    open: false,
};

pub(super) static SMALLTHINKER: Architecture = Architecture {
    name: "smallthinker",
    note: "Of four layers the first sees all and does not rotate, if there is a window.",
    required: MELLUM.required,
    optional: &[HEADS, ROPE, WINDOW, &["expert_feed_forward_length", "expert_gating_func"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(EXPERTS)])],
    open: false,
};

pub(super) static SPARK2_5: Architecture = Architecture {
    name: "spark2_5",
    note: "Attention has a gate for each head.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size", "rope.dimension_count_swa"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_gate.weight", "n_embd, n_head"),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static GRANITE_SWA: Architecture = Architecture {
    name: "granite_swa",
    note: "Granite with windows. Gates of experts stand beside what they gate, in one matrix.",
    required: &[SIZES, TRANSFORMER, RMS, WINDOW_KEYS],
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        EXPERT_KEYS,
        &[
            "vocab_size",
            "attention.scale",
            "attention.rope_pattern",
            "embedding_scale",
            "residual_scale",
            "logit_scale",
            "expert_shared_feed_forward_length",
        ],
    ],
    defaults: &[],
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
    open: false,
};

const WINDOW_KEYS: &[&str] = &["attention.sliding_window"];
const FUSED_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_up_exps.weight", "n_embd, 2*n_ff, n_expert"),
    Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    Optional("ffn_up_shexp.weight", "n_embd, 2*n_ff_shared"),
    Optional("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

const COHERE_ATTENTION: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT)];
const COHERE_EXPERTS: &[Item] = &[
    All(EXPERTS),
    When(
        "n_expert_shared",
        &[
            Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
            Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
            Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
        ],
    ),
];

pub(super) static COHERE2_MOE: Architecture = Architecture {
    name: "cohere2moe",
    note: "Attention and feed-forward read the same input. Layers without a window do not rotate.",
    required: &[SIZES, TRANSFORMER, EXPERT_KEYS, WINDOW_KEYS, &["logit_scale"]],
    optional: &[
        NORM,
        RMS,
        HEADS,
        ROPE,
        WINDOW,
        ROUTED_KEYS,
        &["vocab_size", "expert_shared_feed_forward_length", "nextn_predict_layers"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(COHERE_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(COHERE_ATTENTION), All(COHERE_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(COHERE_ATTENTION), Maybe(COHERE_EXPERTS), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};
