//! Metadata keys and tensors of `qwen35`.

use crate::qwen3next::schema::{FULL_ATTENTION, LINEAR_ATTENTION, NORMS, OPTIONAL, TENSORS};
use crate::schema::architecture::Item::{All, Maybe, OneOf, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Linear attention with separate projections of alpha and beta.
pub(crate) const LINEAR_ATTENTION_SEPARATE: &[Item] = &[
    All(LINEAR_ATTENTION),
    Required("ssm_alpha.weight", "n_embd, dt_rank"),
    Required("ssm_beta.weight", "n_embd, dt_rank"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen35",
    note: "Layers without `attn_q` have linear attention (gated delta rule).",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
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
                All(GATED_FFN),
            ],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL_ATTENTION), Maybe(GATED_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
