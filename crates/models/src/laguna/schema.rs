//! Metadata keys and tensors of `laguna`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};
use crate::step35::schema::MOE_WITH_SHARED_EXPERT;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "laguna",
    note: "The attention output has a gate, per head or per element.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::LEADING_DENSE_BLOCK_COUNT, key::EXPERT_FEED_FORWARD_LENGTH],
    ],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        DEEPSEEK_MOE_KEYS,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::ROPE_DIMENSION_COUNT_SWA],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(QK_NORMS),
        Required("attn_gate.weight", "n_embd, undetermined"),
        All(FFN_NORM),
        OneOf(&[GATED_FFN, MOE_WITH_SHARED_EXPERT]),
    ])],
    ..Architecture::DEFAULT
};
