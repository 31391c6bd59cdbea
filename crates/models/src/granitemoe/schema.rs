//! Metadata keys and tensors of `granitemoe`.

use crate::granite::schema::MULTIPLIERS;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granitemoe",
    note: "MoE with an optional shared expert, or the shared expert alone.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::LOGIT_SCALE]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        MULTIPLIERS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
