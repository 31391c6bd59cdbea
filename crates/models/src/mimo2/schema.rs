//! Metadata keys and tensors of `mimo2`.

use crate::schema::architecture::Item::{All, Maybe, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// GQA with optional attention sinks.
const MIMO_ATTENTION: &[Item] = &[
    All(ATTN_NORM),
    All(QKV),
    Required("attn_output.weight", "n_head*head_v, n_embd"),
    Optional("attn_sinks.weight", "n_head"),
    All(FFN_NORM),
];

/// MoE with an optional selection bias.
const MIMO_EXPERTS: &[Item] = &[All(EXPERTS), Optional("exp_probs_b.bias", "n_expert")];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mimo2",
    note: "The head size of values is smaller than that of keys; KV heads differ by kind of layer.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::ATTENTION_SLIDING_WINDOW]],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        DEEPSEEK_MOE_KEYS,
        &[key::ATTENTION_VALUE_SCALE, key::NEXTN_PREDICT_LAYERS],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(MIMO_ATTENTION), OneOf(&[GATED_FFN, MIMO_EXPERTS])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(MIMO_ATTENTION),
                Maybe(GATED_FFN),
                Maybe(MIMO_EXPERTS),
                Maybe(MTP),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};
