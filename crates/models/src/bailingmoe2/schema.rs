//! Metadata keys and tensors.

use crate::schema::architecture::Item::{All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const BAILING_ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(FUSED_QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bailingmoe2",
    note: "Ling and Ring, the second generation.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS,
        EXPERT_KEYS,
        &[key::EXPERT_SHARED_COUNT, key::EXPERT_GATING_FUNC],
    ],
    optional: &[
        HEADS,
        ROPE,
        ROUTED_KEYS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::NEXTN_PREDICT_LAYERS],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(BAILING_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_trunk",
            items: &[All(BAILING_ATTENTION), All(SHARED_WIDTH_EXPERTS)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(BAILING_ATTENTION),
                Maybe(SHARED_WIDTH_EXPERTS),
                Maybe(NEXT_TOKENS),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};

/// Experts beside those that are always asked, which have a width of their own.
const SHARED_WIDTH_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
