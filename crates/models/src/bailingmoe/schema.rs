//! Metadata keys and tensors of `bailingmoe`.

use crate::deepseek::schema::ATTENTION;
use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bailingmoe",
    note: "Ling and Ring, first generation.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_SHARED_COUNT]],
    optional: &[HEADS, ROPE, DEEPSEEK_MOE_KEYS, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "n_layer",
        items: &[All(ATTENTION), All(DEEPSEEK_MOE)],
    }],
    ..Architecture::DEFAULT
};
