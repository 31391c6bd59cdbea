//! Metadata keys and tensors of `cohere2moe`.

use crate::granite_swa::schema::WINDOW_KEYS;
use crate::schema::architecture::Item::{All, Maybe, Required, When};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const ATTENTION: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT)];

const MOE_FFN: &[Item] = &[
    All(EXPERTS),
    When(
        "n_expert_shared",
        &[
            Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
            Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
            Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
        ],
    ),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "cohere2moe",
    note: "Attention and FFN are parallel and share one norm. Layers without a sliding window \
           have no RoPE.",
    required: &[SIZES, TRANSFORMER, EXPERT_KEYS, WINDOW_KEYS, &[key::LOGIT_SCALE]],
    optional: &[
        LAYER_NORM,
        RMS_NORM,
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        DEEPSEEK_MOE_KEYS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::NEXTN_PREDICT_LAYERS],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
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
            to: "n_trunk",
            items: &[All(ATTENTION), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
