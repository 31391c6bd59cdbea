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
