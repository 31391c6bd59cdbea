//! Metadata keys and tensors of `hy_v4`.

use crate::deepseek2::schema::{ATTENTION, EXPERT_FFN};
use crate::deepseek32::schema::{INDEXER, INDEXER_KEYS};
use crate::schema::architecture::Item::{All, Maybe, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// What mixes the streams of the residual in front of a layer's part: twice as many numbers as there are streams.
const STREAMS: &[Item] = &[
    Required("hc_attn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_attn_base.weight", "2*n_hyper"),
    Required("hc_attn_scale.weight", "2"),
    Required("hc_ffn_fn.weight", "n_hyper*n_embd, 2*n_hyper"),
    Required("hc_ffn_base.weight", "2*n_hyper"),
    Required("hc_ffn_scale.weight", "2"),
];

const HY_V4_ATTENTION: &[Item] = &[
    All(ATTENTION),
    Required("attn_sinks.weight", "n_head"),
    Required("attn_gate.weight", "n_embd, n_head*mla_v"),
    Maybe(INDEXER),
    All(STREAMS),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hy_v4",
    note: "Hunyuan 4: as glm-dsa, with gates and sinks in attention and several streams of the residual.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
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
        ROUTED_KEYS,
        INDEXER_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_KEY_LENGTH_MLA,
            key::ATTENTION_VALUE_LENGTH_MLA,
            key::ATTENTION_INDEXER_TYPES,
            key::SWIGLU_CLAMP_EXP,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(STREAMS_OF_OUTPUT)],
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
            items: &[All(HY_V4_ATTENTION), All(EXPERT_FFN)],
        },
    ],
    ..Architecture::DEFAULT
};

/// What mixes the streams behind the last layer.
pub(crate) const STREAMS_OF_OUTPUT: &[Item] = &[
    Required("output_hc_fn.weight", "n_hyper*n_embd, n_hyper"),
    Required("output_hc_base.weight", "n_hyper"),
    Required("output_hc_scale.weight", "1"),
];
