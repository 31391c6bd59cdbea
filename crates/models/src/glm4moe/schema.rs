//! Metadata keys and tensors of `glm4moe`.

use crate::schema::architecture::Item::{All, Maybe, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    Maybe(QK_NORMS),
    Required("post_attention_norm.weight", "n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "glm4moe",
    note: "GLM 4.5 and 4.6. The norm before the FFN is `post_attention_norm`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[key::ROPE_DIMENSION_SECTIONS, key::NEXTN_PREDICT_LAYERS, key::VOCAB_SIZE],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
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
            items: &[All(ATTENTION), All(DEEPSEEK_MOE)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(DEEPSEEK_MOE), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
