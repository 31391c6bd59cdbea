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
    All(HEAD_NORMS),
    All(FFN_NORM),
    All(POST_NORMS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "afmoe",
    note: "Arcee Trinity. Token embeddings are scaled by the square root of the hidden size. \
           Every fourth layer has full attention without RoPE; the others have a sliding window.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &[key::EXPERT_SHARED_COUNT]],
    optional: &[HEADS, ROPE, WINDOW, ROUTED_KEYS, &[key::VOCAB_SIZE]],
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
            items: &[All(GATED_ATTENTION), All(ROUTED_EXPERTS)],
        },
    ],
    ..Architecture::DEFAULT
};
