//! Metadata keys and tensors of `deepseek4`.

use crate::deepseek32::schema::INDEXER_KEYS;
use crate::hy_v4::schema::OUTPUT_HYPER_CONNECTION;
use crate::schema::architecture::Item::{All, Maybe, Optional, Required, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Attention with one KV head, sinks and a grouped low-rank output projection; hyper-connections.
pub(crate) const ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    Required("attn_sinks.weight", "n_head"),
    Required("attn_q_a.weight", "n_embd, q_rank"),
    Required("attn_q_a_norm.weight", "q_rank"),
    Required("attn_q_b.weight", "q_rank, n_q"),
    Required("attn_kv.weight", "n_embd, head_k"),
    Required("attn_kv_a_norm.weight", "head_k"),
    Required("attn_output_a.weight", "n_q/n_out_group, out_rank*n_out_group"),
    Required("attn_output_b.weight", "out_rank*n_out_group, n_embd"),
    All(SINKHORN_HYPER_CONNECTIONS),
];

/// Compressor of blocks of `compress_ratio` tokens, and the indexer that selects blocks.
const COMPRESSOR: &[Item] = &[
    Required("attn_compressor_kv.weight", "n_embd, undetermined"),
    Required("attn_compressor_gate.weight", "n_embd, undetermined"),
    Required("attn_compressor_ape.weight", "undetermined, compress_ratio"),
    Required("attn_compressor_norm.weight", "head_k"),
    Maybe(&[
        Required("indexer.proj.weight", "n_embd, index_heads"),
        Required("indexer.attn_q_b.weight", "q_rank, index_heads*index_dim"),
        Required("indexer_compressor_kv.weight", "n_embd, 2*index_dim"),
        Required("indexer_compressor_gate.weight", "n_embd, 2*index_dim"),
        Required("indexer_compressor_ape.weight", "2*index_dim, compress_ratio"),
        Required("indexer_compressor_norm.weight", "index_dim"),
    ]),
];

pub(crate) const BIASED_MOE_FFN: &[Item] =
    &[Required("exp_probs_b.bias", "n_expert"), All(MOE_FFN)];

const MOE_FFN: &[Item] = &[
    All(FFN_NORM),
    All(EXPERTS),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_exp*n_expert_shared"),
    Required("ffn_down_shexp.weight", "n_ff_exp*n_expert_shared, n_embd"),
];

const MIXER: &[Item] = &[
    All(ATTENTION),
    When("compress_ratio", COMPRESSOR),
    Optional("exp_probs_b_vl.bias", "n_expert"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deepseek4",
    note: "Attention to compressed blocks of tokens beside a sliding window, and \
           hyper-connections. The first layers select experts by token id.",
    required: &[
        SIZES,
        RMS_NORM,
        EXPERT_KEYS,
        INDEXER_KEYS,
        &[
            key::ATTENTION_HEAD_COUNT,
            key::ATTENTION_SLIDING_WINDOW,
            key::ATTENTION_OUTPUT_GROUP_COUNT,
            key::ATTENTION_OUTPUT_LORA_RANK,
            key::ATTENTION_COMPRESS_RATIOS,
            key::ATTENTION_COMPRESS_ROPE_FREQ_BASE,
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_SHARED_COUNT,
            key::EXPERT_WEIGHTS_SCALE,
            key::EXPERT_WEIGHTS_NORM,
            key::EXPERT_GATING_FUNC,
            key::SWIGLU_CLAMP_EXP,
            key::HYPER_CONNECTION_COUNT,
            key::HYPER_CONNECTION_SINKHORN_ITERATIONS,
            key::HYPER_CONNECTION_EPSILON,
            key::HASH_LAYER_COUNT,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::VOCAB_SIZE,
            key::FEED_FORWARD_LENGTH,
            key::EMBEDDING_LENGTH_OUT,
            key::EXPERT_GROUP_COUNT,
            key::EXPERT_GROUP_USED_COUNT,
            key::SWIGLU_CLAMP_SHEXP,
            key::NEXTN_PREDICT_LAYERS,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(OUTPUT_HYPER_CONNECTION)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_hash",
            items: &[
                All(MIXER),
                Required("ffn_gate_tid2eid.weight", "n_expert_used, n_vocab"),
                All(MOE_FFN),
            ],
        },
        Block {
            prefix: "blk.",
            from: "n_hash",
            to: "n_trunk",
            items: &[All(MIXER), All(BIASED_MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(COMPRESSOR), Maybe(BIASED_MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
