//! Metadata keys and tensors of `glm-dsa`.

use crate::deepseek2::schema::{MLA, MOE_FFN};
use crate::deepseek32::schema::INDEXER;
use crate::schema::architecture::Item::{All, Maybe};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;
use crate::{deepseek2, deepseek32};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "glm-dsa",
    note: "GLM 5: as `deepseek32`; layers without an indexer reuse the keys selected by an \
           earlier layer.",
    required: deepseek32::schema::SCHEMA.required,
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::NEXTN_PREDICT_LAYERS,
            key::ATTENTION_INDEXER_TYPES,
        ],
    ],
    tensors: deepseek2::schema::SCHEMA.tensors,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(MLA), Maybe(INDEXER), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(MLA), Maybe(INDEXER), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(MLA), Maybe(INDEXER), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
