//! Metadata keys and tensors of `glm4`.

use crate::schema::architecture::Item::{All, Maybe};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const LAYER: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    All(ATTN_OUTPUT),
    All(FFN_NORM),
    All(FUSED_GATED_FFN),
    All(POST_NORMS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "glm4",
    note: "GLM 4 (0414), GLM 4.1V and GLM OCR.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[
        HEADS,
        ROPE,
        &[key::ROPE_DIMENSION_SECTIONS, key::NEXTN_PREDICT_LAYERS, key::VOCAB_SIZE],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_trunk", items: LAYER },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(LAYER), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
