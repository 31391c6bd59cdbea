//! Qwen 3 Next and Qwen 3.5: attention is linear in most layers.

use crate::schema::architecture::Item::{self, All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

/// Queries come with gates.
const FULL: &[Item] = &[
    Required("attn_q.weight", "n_embd, 2*n_q"),
    Required("attn_k.weight", "n_embd, n_k"),
    Required("attn_v.weight", "n_embd, n_v"),
    All(ATTN_OUTPUT),
    All(HEAD_NORMS),
];
/// The gated delta rule: heads of values share heads of keys.
const LINEAR: &[Item] = &[
    Required("attn_qkv.weight", "n_embd, 2*n_group*d_state + d_inner"),
    Required("attn_gate.weight", "n_embd, d_inner"),
    Required("ssm_conv1d.weight", "d_conv, 2*n_group*d_state + d_inner"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "dt_rank"),
    Required("ssm_norm.weight", "d_inner/dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];
const FUSED_RATES: &[Item] = &[All(LINEAR), Required("ssm_ba.weight", "n_embd, 2*dt_rank")];
const RATES: &[Item] = &[
    All(LINEAR),
    Required("ssm_alpha.weight", "n_embd, dt_rank"),
    Required("ssm_beta.weight", "n_embd, dt_rank"),
];
const NORMS: &[Item] = &[All(ATTN_NORM), Required("post_attention_norm.weight", "n_embd")];
const SHARED_EXPERT: &[Item] = &[
    All(EXPERTS),
    Required("ffn_gate_inp_shexp.weight", "n_embd"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
const LINEAR_KEYS: &[&str] = &["ssm.group_count"];
const OPTIONAL: &[&[&str]] = &[
    HEADS,
    ROPE,
    &[
        "vocab_size",
        "attention.recurrent_layers",
        "full_attention_interval",
        "nextn_predict_layers",
        "rope.dimension_sections",
        "feed_forward_length",
        "expert_feed_forward_length",
        "expert_shared_feed_forward_length",
    ],
];
const TENSORS: &[Item] = &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)];

pub(super) static QWEN3NEXT: Architecture = Architecture {
    name: "qwen3next",
    note: "Attention is linear in layers without `attn_q`.",
    required: &[SIZES, &["attention.head_count"], RMS, EXPERT_KEYS, STATE_SPACE, LINEAR_KEYS],
    optional: OPTIONAL,
    defaults: &[],
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(NORMS), OneOf(&[FULL, FUSED_RATES]), All(SHARED_EXPERT)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL), Maybe(SHARED_EXPERT), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

pub(super) static QWEN35: Architecture = Architecture {
    name: "qwen35",
    note: "Attention is linear in layers without `attn_q`.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, LINEAR_KEYS, &["rope.dimension_sections"]],
    optional: OPTIONAL,
    defaults: &[],
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(NORMS), OneOf(&[FULL, RATES]), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL), Maybe(GATED_FFN), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

pub(super) static QWEN35MOE: Architecture = Architecture {
    name: "qwen35moe",
    note: "As qwen35, with experts.",
    required: &[
        SIZES,
        &["attention.head_count"],
        RMS,
        EXPERT_KEYS,
        STATE_SPACE,
        LINEAR_KEYS,
        &["rope.dimension_sections"],
    ],
    optional: OPTIONAL,
    defaults: &[],
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(NORMS), OneOf(&[FULL, RATES]), All(SHARED_EXPERT)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL), Maybe(SHARED_EXPERT), Maybe(NEXT_TOKENS)],
        },
    ],
    open: false,
};

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

pub(super) static QWEN4EXP: Architecture = Architecture {
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
    defaults: &[],
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
    open: false,
};
