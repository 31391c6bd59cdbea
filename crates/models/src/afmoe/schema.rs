//! Metadata keys and tensors of `afmoe`.

use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const GATED_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    Required("attn_gate.weight", "n_embd, n_q"),
    All(ATTN_OUTPUT),
    All(QK_NORMS),
    All(FFN_NORM),
    All(POST_NORMS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "afmoe",
    note: "Arcee Trinity. Token embeddings are scaled by the square root of the hidden size. \
           Every fourth layer has full attention without RoPE; the others have a sliding window.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_SHARED_COUNT]],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, DEEPSEEK_MOE_KEYS, &[key::VOCAB_SIZE]],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("rope_freqs.weight", "n_rot/2"),
    ],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(GATED_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(GATED_ATTENTION), All(DEEPSEEK_MOE)],
        },
    ],
    ..Architecture::DEFAULT
};
