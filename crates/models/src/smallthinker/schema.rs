//! Metadata keys and tensors of `smallthinker`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "smallthinker",
    note: "With a sliding window: the first of each four layers has full attention without RoPE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[key::EXPERT_FEED_FORWARD_LENGTH, key::EXPERT_GATING_FUNC],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(EXPERTS)])],
    ..Architecture::DEFAULT
};
