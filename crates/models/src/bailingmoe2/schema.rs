//! Metadata keys and tensors of `bailingmoe2`.

use crate::schema::architecture::Item::{All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

const ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(FUSED_QKV), All(ATTN_OUTPUT), All(QK_NORMS), All(FFN_NORM)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bailingmoe2",
    note: "Ling and Ring, second generation.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::EXPERT_SHARED_COUNT, key::EXPERT_GATING_FUNC],
    ],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::NEXTN_PREDICT_LAYERS],
    ],
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
            to: "n_trunk",
            items: &[All(ATTENTION), All(MOE_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[
                Maybe(ATTENTION),
                Maybe(MOE_FFN),
                Maybe(MTP),
                Optional("layer_output_norm.weight", "n_embd"),
            ],
        },
    ],
    ..Architecture::DEFAULT
};

/// Routed experts and shared experts of another FFN size.
const MOE_FFN: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
