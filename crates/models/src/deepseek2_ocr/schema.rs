//! Metadata keys and tensors of `deepseek2-ocr`.

use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const ATTENTION: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deepseek2-ocr",
    note: "As `deepseek2`, with the attention of `llama`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_SHARED_COUNT]],
    optional: &[HEADS, ROPE, DEEPSEEK_MOE_KEYS, &[key::VOCAB_SIZE, key::ATTENTION_SLIDING_WINDOW]],
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
            to: "n_layer",
            items: &[All(ATTENTION), All(DEEPSEEK_MOE)],
        },
    ],
    ..Architecture::DEFAULT
};
