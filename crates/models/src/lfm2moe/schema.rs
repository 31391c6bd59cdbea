//! Metadata keys and tensors of `lfm2moe`.

use crate::lfm2::schema::{MIXER, SHORTCONV, TENSORS};
use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "lfm2moe",
    note: "As lfm2, with MoE after the leading dense layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SHORTCONV, EXPERT_KEYS, &[key::EXPERT_GATING_FUNC]],
    optional: &[
        HEADS,
        ROPE,
        &[key::VOCAB_SIZE, key::EXPERT_FEED_FORWARD_LENGTH, key::LEADING_DENSE_BLOCK_COUNT],
    ],
    tensors: TENSORS,
    blocks: &[
        Block { prefix: "blk.", from: "0", to: "n_dense", items: &[All(MIXER), All(GATED_FFN)] },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(MIXER), All(EXPERTS), Required("exp_probs_b.bias", "n_expert")],
        },
    ],
    ..Architecture::DEFAULT
};
