//! Metadata keys and tensors of `minimax-m3`.

use crate::dots1::schema::ATTENTION;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minimax-m3",
    note: "MoE layers have block-sparse attention with an indexer.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[
            key::EXPERT_SHARED_COUNT,
            key::ATTENTION_INDEXER_HEAD_COUNT,
            key::ATTENTION_INDEXER_KEY_LENGTH,
            key::ATTENTION_INDEXER_TOP_K,
            key::ATTENTION_INDEXER_BLOCK_SIZE,
            key::ATTENTION_INDEXER_LOCAL_BLOCKS,
        ],
    ],
    optional: &[HEADS, ROPE, DEEPSEEK_MOE_KEYS],
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
            items: &[
                All(ATTENTION),
                All(DEEPSEEK_MOE),
                Required("indexer.q_proj.weight", "n_embd, index_heads*index_dim"),
                Required("indexer.k_proj.weight", "n_embd, index_dim"),
                Required("indexer.q_norm.weight", "index_dim"),
                Required("indexer.k_norm.weight", "index_dim"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
