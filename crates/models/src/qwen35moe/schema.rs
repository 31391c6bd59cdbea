//! Metadata keys and tensors of `qwen35moe`.

use crate::qwen3next::schema::{FULL_ATTENTION, NORMS, OPTIONAL, SHARED_EXPERT, TENSORS};
use crate::qwen35::schema::LINEAR_ATTENTION_SEPARATE;
use crate::schema::architecture::Item::{All, Maybe, OneOf};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen35moe",
    note: "As qwen35, with MoE layers.",
    required: &[
        SIZES,
        &[key::ATTENTION_HEAD_COUNT],
        RMS_NORM,
        EXPERT_KEYS,
        SSM,
        &[key::SSM_GROUP_COUNT],
        &[key::ROPE_DIMENSION_SECTIONS],
    ],
    optional: OPTIONAL,
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[
                All(NORMS),
                OneOf(&[FULL_ATTENTION, LINEAR_ATTENTION_SEPARATE]),
                All(SHARED_EXPERT),
            ],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL_ATTENTION), Maybe(SHARED_EXPERT), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
