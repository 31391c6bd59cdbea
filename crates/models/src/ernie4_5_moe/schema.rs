//! Metadata keys and tensors of `ernie4_5-moe`.

use crate::ernie4_5::schema::{ATTENTION, LAYER};
use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "ernie4_5-moe",
    note: "ERNIE 4.5 with a mixture of experts.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::INTERLEAVE_MOE_LAYER_STEP]],
    optional: &[HEADS, ROPE, DEEPSEEK_MOE_KEYS, &[key::EXPERT_SHARED_FEED_FORWARD_LENGTH]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: LAYER },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(ATTENTION), All(DEEPSEEK_MOE)],
        },
    ],
    ..Architecture::DEFAULT
};
