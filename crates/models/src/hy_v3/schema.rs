//! Metadata keys and tensors of `hy_v3`.

use crate::exaone_moe::schema::ATTENTION;
use crate::schema::architecture::Item::{All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hy_v3",
    note: "Hunyuan 3. Layers have a dense FFN or MoE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_FEED_FORWARD_LENGTH]],
    optional: &[
        HEADS,
        ROPE,
        DEEPSEEK_MOE_KEYS,
        &[key::VOCAB_SIZE, key::NEXTN_PREDICT_LAYERS, key::EXPERT_SHARED_FEED_FORWARD_LENGTH],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[All(ATTENTION), Item::OneOf(&[GATED_FFN, HY_EXPERTS])],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(ATTENTION), Maybe(GATED_FFN), Maybe(HY_EXPERTS), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};

/// MoE with shared experts; the name of the selection bias has no suffix.
const HY_EXPERTS: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];
