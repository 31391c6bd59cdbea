//! Metadata keys and tensors of `exaone-moe`.

use crate::schema::architecture::Item::{All, Maybe, Optional, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) const ATTENTION: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(QK_NORMS), All(FFN_NORM)];

const MOE_FFN: &[Item] = &[
    All(EXPERTS),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "exaone-moe",
    note: "K-EXAONE. Layers without a sliding window have no RoPE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::EXPERT_FEED_FORWARD_LENGTH]],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        DEEPSEEK_MOE_KEYS,
        &[key::VOCAB_SIZE, key::NEXTN_PREDICT_LAYERS, key::EXPERT_SHARED_FEED_FORWARD_LENGTH],
    ],
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
            items: &[Maybe(ATTENTION), Maybe(GATED_FFN), Maybe(MOE_FFN), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
