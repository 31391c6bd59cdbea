//! GLM 4, and ChatGLM before it.

use super::layers;
use crate::schema::architecture::Item::{self, All, Maybe, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

const LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    All(FFN_NORM),
    All(FUSED_GATED_FFN),
    All(POST_NORMS),
];

pub(super) static GLM4: Architecture = Architecture {
    name: "glm4",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["rope.dimension_sections", "nextn_predict_layers", "vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_trunk", items: LAYER },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(LAYER), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

pub(super) static CHATGLM: Architecture = Architecture {
    name: "chatglm",
    note: "Also the first model that is called GLM 4.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    open: false,
};

const MOE_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Maybe(HEAD_NORMS),
    Required("post_attention_norm.weight", "n_embd"),
];

pub(super) static GLM4_MOE: Architecture = Architecture {
    name: "glm4moe",
    note: "GLM 4.5 and 4.6. The norm before feed-forward is `post_attention_norm`.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &["rope.dimension_sections", "nextn_predict_layers", "vocab_size"],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(MOE_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(MOE_ATTENTION), All(ROUTED_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(MOE_ATTENTION), Maybe(ROUTED_EXPERTS), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};
