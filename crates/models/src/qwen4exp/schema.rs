//! Metadata keys and tensors of `qwen4exp`.

use crate::qwen3next::schema::{FULL_ATTENTION, SHARED_EXPERT};
use crate::qwen35::schema::LINEAR_ATTENTION_SEPARATE;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Low-rank hyper-connections: mixing of the residual streams before attention and FFN, and injection of their
/// outputs.
const HYPER_CONNECTIONS: &[Item] = &[
    Required("hc_attn_norm.weight", "n_hyper*n_embd"),
    Required("hc_attn_down.weight", "n_hyper*n_embd, hyper_rank"),
    Required("hc_attn_up.weight", "hyper_rank, n_hyper*n_embd"),
    Required("hc_attn_inject.weight", "n_hyper*n_embd, n_hyper"),
    Required("hc_ffn_norm.weight", "n_hyper*n_embd"),
    Required("hc_ffn_down.weight", "n_hyper*n_embd, hyper_rank"),
    Required("hc_ffn_up.weight", "hyper_rank, n_hyper*n_embd"),
    Required("hc_ffn_inject.weight", "n_hyper*n_embd, n_hyper"),
];

/// Full attention with an indexer.
const INDEXED_ATTENTION: &[Item] = &[
    All(FULL_ATTENTION),
    Required("indexer.q_proj.weight", "n_embd, index_heads*index_dim"),
    Required("indexer.k_proj.weight", "n_embd, index_dim"),
    Required("indexer.q_norm.weight", "index_dim"),
    Required("indexer.k_norm.weight", "index_dim"),
];

/// N-gram embeddings of a layer.
const NGRAM_EMBEDDINGS: &[Item] = &[
    Required("ple_key.weight", "n_embd, n_hyper*n_embd"),
    Required("ple_value.weight", "n_embd, n_embd"),
    Required("ple_norm_key.weight", "n_hyper*n_embd"),
    Required("ple_norm_query.weight", "n_hyper*n_embd"),
    Required("ple_norm_conv.weight", "n_hyper*n_embd"),
    Required("ple_conv1d.weight", "ple_kernel, n_hyper*n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen4exp",
    note: "Qwen 3.8 Flash: as qwen35moe, with hyper-connections instead of pre-norms, an indexer in \
           layers with `attn_q`, and n-gram embeddings in one layer.",
    required: &[
        SIZES,
        &[key::ATTENTION_HEAD_COUNT],
        RMS_NORM,
        EXPERT_KEYS,
        SSM,
        &[key::SSM_GROUP_COUNT],
        &[
            key::ROPE_DIMENSION_SECTIONS,
            key::HYPER_CONNECTION_COUNT,
            key::HYPER_CONNECTION_LOW_RANK,
            key::ATTENTION_INDEXER_HEAD_COUNT,
            key::ATTENTION_INDEXER_KEY_LENGTH,
            key::ATTENTION_INDEXER_TOP_K,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_RECURRENT_LAYERS,
            key::ATTENTION_COMPRESS_RATIOS,
            key::FULL_ATTENTION_INTERVAL,
            key::FEED_FORWARD_LENGTH,
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
            key::EMBEDDING_LENGTH_PER_LAYER_INPUT,
            key::PLE_LAYERS,
            key::PLE_NGRAM_SIZE,
            key::PLE_HEADS_PER_NGRAM,
            key::PLE_CONV_KERNEL,
            key::PLE_EOS_TOKEN_ID,
            key::PLE_IMAGE_TOKEN_ID,
            key::PLE_LAYER_MULTIPLIERS,
            key::PLE_HEAD_OFFSETS,
            key::PLE_HEAD_VOCAB_SIZES,
        ],
    ],
    tensors: &[
        All(EMBEDDING),
        All(TIED_OUTPUT),
        Required("output_hc_norm.weight", "n_hyper*n_embd"),
        Required("output_hc_down.weight", "n_hyper*n_embd, hyper_rank"),
        Required("output_hc_up.weight", "hyper_rank, n_hyper*n_embd"),
        Optional("per_layer_token_embd.weight", "n_embd_layer, undetermined"),
    ],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "n_layer",
        items: &[
            All(HYPER_CONNECTIONS),
            OneOf(&[INDEXED_ATTENTION, LINEAR_ATTENTION_SEPARATE]),
            All(SHARED_EXPERT),
            Maybe(NGRAM_EMBEDDINGS),
        ],
    }],
    ..Architecture::DEFAULT
};
