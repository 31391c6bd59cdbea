//! Metadata keys and tensors.

use crate::qwen3next::schema::{FULL, LINEAR_KEYS, NORMS, OPTIONAL, SHARED_EXPERT, TENSORS};
use crate::qwen35::schema::RATES;
use crate::schema::architecture::Item::{All, Maybe, OneOf};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen35moe",
    note: "As qwen35, with experts.",
    required: &[
        SIZES,
        &[key::ATTENTION_HEAD_COUNT],
        RMS,
        EXPERT_KEYS,
        STATE_SPACE,
        LINEAR_KEYS,
        &[key::ROPE_DIMENSION_SECTIONS],
    ],
    optional: OPTIONAL,
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(NORMS), OneOf(&[FULL, RATES]), All(SHARED_EXPERT)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL), Maybe(SHARED_EXPERT), Maybe(NEXT_TOKENS)],
        },
    ],
    ..Architecture::DEFAULT
};
