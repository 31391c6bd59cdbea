//! Metadata keys and tensors of `dots1`.

use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) const ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(QK_NORMS), All(FFN_NORM)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dots1",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_SHARED_COUNT]],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, DEEPSEEK_MOE_KEYS],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
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
            to: "n_layer",
            items: &[All(ATTENTION), All(DEEPSEEK_MOE)],
        },
    ],
    ..Architecture::DEFAULT
};
