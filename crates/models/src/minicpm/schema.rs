//! Metadata keys and tensors of `minicpm`.

use crate::granite::schema::MULTIPLIERS;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minicpm",
    note: "Files without the multipliers use those of the first models.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, EXPERT_KEYS, MULTIPLIERS, &[key::VOCAB_SIZE, key::LOGIT_SCALE]],
    defaults: &[(key::EMBEDDING_SCALE, DefaultValue::Number(12.0))],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
