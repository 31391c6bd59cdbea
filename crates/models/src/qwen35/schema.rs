//! Metadata keys and tensors.

use crate::qwen3next::schema::{FULL, LINEAR, LINEAR_KEYS, NORMS, OPTIONAL, TENSORS};
use crate::schema::architecture::Item::{All, Maybe, OneOf, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) const RATES: &[Item] = &[
    All(LINEAR),
    Required("ssm_alpha.weight", "n_embd, dt_rank"),
    Required("ssm_beta.weight", "n_embd, dt_rank"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen35",
    note: "Attention is linear in layers without `attn_q`.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, LINEAR_KEYS, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: OPTIONAL,
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(NORMS), OneOf(&[FULL, RATES]), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL), Maybe(GATED_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    ..Architecture::DEFAULT
};
