//! Metadata keys and tensors of `mistral3`.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mistral3",
    note: "With `attention.temperature_scale`, queries have an attention temperature beyond the \
           original context.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        EXPERT_KEYS,
        &[key::VOCAB_SIZE, key::ATTENTION_TEMPERATURE_SCALE],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
