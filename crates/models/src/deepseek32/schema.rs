//! Metadata keys and tensors of `deepseek32`.

use crate::deepseek2;
use crate::deepseek2::schema::{MLA, MOE_FFN};
use crate::schema::architecture::Item::{All, Maybe, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) const INDEXER: &[Item] = &[
    Required("indexer.attn_q_b.weight", "q_rank, index_heads*index_dim"),
    Required("indexer.attn_k.weight", "n_embd, index_dim"),
    Required("indexer.k_norm.weight", "index_dim"),
    Required("indexer.k_norm.bias", "index_dim"),
    Required("indexer.proj.weight", "n_embd, index_heads"),
];

pub(crate) const INDEXER_KEYS: &[&str] = &[
    key::ATTENTION_INDEXER_HEAD_COUNT,
    key::ATTENTION_INDEXER_KEY_LENGTH,
    key::ATTENTION_INDEXER_TOP_K,
    key::ATTENTION_Q_LORA_RANK,
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deepseek32",
    note: "DeepSeek V3.2: as `deepseek2`, with an indexer that selects the keys to attend to.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::ATTENTION_KV_LORA_RANK, key::EXPERT_FEED_FORWARD_LENGTH, key::EXPERT_SHARED_COUNT],
        INDEXER_KEYS,
    ],
    optional: deepseek2::schema::SCHEMA.optional,
    tensors: deepseek2::schema::SCHEMA.tensors,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(MLA), All(INDEXER), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(MLA), All(INDEXER), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(MLA), Maybe(INDEXER), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
