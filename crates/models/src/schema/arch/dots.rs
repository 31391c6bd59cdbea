//! dots.llm1, MiniMax, Trinity: experts that a bias helps to choose.

use super::layers;
use crate::schema::architecture::Item::{self, All, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

const ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM)];

pub(super) static DOTS1: Architecture = Architecture {
    name: "dots1",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_shared_count"]],
    optional: &[HEADS, ROPE, WINDOW, ROUTED_KEYS],
    defaults: &[],
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
            items: &[All(ATTENTION), All(ROUTED_EXPERTS)],
        },
    ],
    open: false,
};

pub(super) static MINIMAX_M2: Architecture = Architecture {
    name: "minimax-m2",
    note: "Queries and keys are normalized over all heads together.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, ROUTED_KEYS],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(FFN_NORM),
        All(EXPERTS),
        Required("exp_probs_b.bias", "n_expert"),
    ])],
    open: false,
};

pub(super) static MINIMAX_M3: Architecture = Architecture {
    name: "minimax-m3",
    note: "In layers with experts an indexer chooses blocks of tokens that are attended to.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &[
            "expert_shared_count",
            "attention.indexer.head_count",
            "attention.indexer.key_length",
            "attention.indexer.top_k",
            "attention.indexer.block_size",
            "attention.indexer.local_blocks",
        ],
    ],
    optional: &[HEADS, ROPE, ROUTED_KEYS],
    defaults: &[],
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
                All(ROUTED_EXPERTS),
                Required("indexer.q_proj.weight", "n_embd, index_heads*index_dim"),
                Required("indexer.k_proj.weight", "n_embd, index_dim"),
                Required("indexer.q_norm.weight", "index_dim"),
                Required("indexer.k_norm.weight", "index_dim"),
            ],
        },
    ],
    open: false,
};

pub(super) static MINIMAX_01: Architecture = Architecture {
    name: "minimax-01",
    note: "MiniMax Text 01 and M1. Of eight layers the last attends as usual, the others linearly, with a gate.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["residual_scale"]],
    optional: &[HEADS, ROPE, &["full_attention_interval", "attention.recurrent_layers"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        OneOf(&[
            &[
                Required("attn_qkv.weight", "n_embd, 3*n_q"),
                Required("attn_gate.weight", "n_embd, n_q"),
                Required("attn_norm_2.weight", "n_q"),
            ],
            &[
                Required("attn_q.weight", "n_embd, n_q"),
                Required("attn_k.weight", "n_embd, n_k"),
                Required("attn_v.weight", "n_embd, n_v"),
            ],
        ]),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(LLAMA_EXPERTS),
    ])],
    open: false,
};

const GATED_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    Required("attn_gate.weight", "n_embd, n_q"),
    All(ATTN_OUTPUT),
    All(HEAD_NORMS),
    All(FFN_NORM),
    All(POST_NORMS),
];

pub(super) static AFMOE: Architecture = Architecture {
    name: "afmoe",
    note: "Arcee Trinity. Embeddings are multiplied by the root of their width. Of four layers the last \
           has no window and does not rotate.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_shared_count"]],
    optional: &[HEADS, ROPE, WINDOW, ROUTED_KEYS, &["vocab_size"]],
    defaults: &[],
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
    open: false,
};
