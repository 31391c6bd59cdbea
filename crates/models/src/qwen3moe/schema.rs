//! Metadata keys and tensors of `qwen3moe`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3moe",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[key::VOCAB_SIZE, key::EXPERT_FEED_FORWARD_LENGTH, key::EXPERT_WEIGHTS_NORM],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(QK_NORMS),
        All(FFN_NORM),
        All(EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
