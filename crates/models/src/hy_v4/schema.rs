//! Metadata keys and tensors of `hy_v4`.

use crate::deepseek2::schema::{MLA, MOE_FFN};
use crate::deepseek32::schema::{INDEXER, INDEXER_KEYS};
use crate::schema::architecture::Item::{All, Maybe, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Hyper-connections of attention and FFN: input and output weights of each stream.
const HYPER_CONNECTIONS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper"),
    Required("hc_attn_scale.weight", "2"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper"),
    Required("hc_ffn_scale.weight", "2"),
];

/// MLA with gate, sinks, optional indexer and hyper-connections.
const HY_V4_ATTENTION: &[Item] = &[
    All(MLA),
    Required("attn_sinks.weight", "n_head"),
    Required("attn_gate.weight", "n_embd, n_head*mla_v"),
    Maybe(INDEXER),
    All(HYPER_CONNECTIONS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hy_v4",
    note: "Hunyuan 4: as glm-dsa, with attention gates, attention sinks and hyper-connections.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[
            key::ATTENTION_KV_LORA_RANK,
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_SHARED_COUNT,
            key::HYPER_CONNECTION_COUNT,
            key::HYPER_CONNECTION_EPSILON,
            key::HYPER_CONNECTION_MAGNITUDE,
        ],
    ],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        INDEXER_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::ATTENTION_INDEXER_TYPES,
            key::SWIGLU_CLAMP_EXP,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(OUTPUT_HYPER_CONNECTION)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(HY_V4_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(HY_V4_ATTENTION), All(MOE_FFN)],
        },
    ],
    ..Architecture::DEFAULT
};

/// Hyper-connection behind the last layer.
pub(crate) const OUTPUT_HYPER_CONNECTION: &[Item] = &[
    Required("output_hc_fn.weight", "n_hyper*n_embd, n_hyper"),
    Required("output_hc_base.weight", "n_hyper"),
    Required("output_hc_scale.weight", "1"),
];
