//! Metadata keys and tensors.

use crate::qwen3next::schema::{FULL, LINEAR_KEYS, SHARED_EXPERT};
use crate::qwen35::schema::RATES;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;

/// What mixes the streams in front of a layer's part, and what spreads the part's output over them.
const LOW_RANK_STREAMS: &[Item] = &[
    Required("hc_attn_norm.weight", "n_hyper*n_embd"),
    Required("hc_attn_down.weight", "n_hyper*n_embd, hyper_rank"),
    Required("hc_attn_up.weight", "hyper_rank, n_hyper*n_embd"),
    Required("hc_attn_inject.weight", "n_hyper*n_embd, n_hyper"),
    Required("hc_ffn_norm.weight", "n_hyper*n_embd"),
    Required("hc_ffn_down.weight", "n_hyper*n_embd, hyper_rank"),
    Required("hc_ffn_up.weight", "hyper_rank, n_hyper*n_embd"),
    Required("hc_ffn_inject.weight", "n_hyper*n_embd, n_hyper"),
];

const INDEXED: &[Item] = &[
    All(FULL),
    Required("indexer.q_proj.weight", "n_embd, index_heads*index_dim"),
    Required("indexer.k_proj.weight", "n_embd, index_dim"),
    Required("indexer.q_norm.weight", "index_dim"),
    Required("indexer.k_norm.weight", "index_dim"),
];

/// Of the layer with embeddings of n-grams.
const NGRAMS: &[Item] = &[
    Required("ple_key.weight", "n_embd, n_hyper*n_embd"),
    Required("ple_value.weight", "n_embd, n_embd"),
    Required("ple_norm_key.weight", "n_hyper*n_embd"),
    Required("ple_norm_query.weight", "n_hyper*n_embd"),
    Required("ple_norm_conv.weight", "n_hyper*n_embd"),
    Required("ple_conv1d.weight", "ple_kernel, n_hyper*n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen4exp",
    note: "Qwen 3.8 Flash: as qwen35moe, with streams of the residual instead of norms, an indexer in layers with `attn_q`, and n-grams in one layer.",
    required: &[
        SIZES,
        &["attention.head_count"],
        RMS,
        EXPERT_KEYS,
        STATE_SPACE,
        LINEAR_KEYS,
        &[
            "rope.dimension_sections",
            "hyper_connection.count",
            "hyper_connection.low_rank",
            "attention.indexer.head_count",
            "attention.indexer.key_length",
            "attention.indexer.top_k",
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            "vocab_size",
            "attention.recurrent_layers",
            "attention.compress_ratios",
            "full_attention_interval",
            "feed_forward_length",
            "expert_feed_forward_length",
            "expert_shared_feed_forward_length",
            "embedding_length_per_layer_input",
            "ple.layers",
            "ple.ngram_size",
            "ple.heads_per_ngram",
            "ple.conv_kernel",
            "ple.eos_token_id",
            "ple.image_token_id",
            "ple.layer_multipliers",
            "ple.head_offsets",
            "ple.head_vocab_sizes",
        ],
    ],
    tensors: &[
        All(EMBEDDING),
        All(TIED_OUTPUT),
        Required("output_hc_norm.weight", "n_hyper*n_embd"),
        Required("output_hc_down.weight", "n_hyper*n_embd, hyper_rank"),
        Required("output_hc_up.weight", "hyper_rank, n_hyper*n_embd"),
        Optional("per_layer_token_embd.weight", "n_embd_layer, untold"),
    ],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "n_layer",
        items: &[
            All(LOW_RANK_STREAMS),
            OneOf(&[INDEXED, RATES]),
            All(SHARED_EXPERT),
            Maybe(NGRAMS),
        ],
    }],
    ..Architecture::DEFAULT
};
