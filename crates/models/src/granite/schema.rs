//! Metadata keys and tensors of `granite`.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Keys of the multipliers, beside that of the logits.
pub(crate) const MULTIPLIERS: &[&str] =
    &[key::RESIDUAL_SCALE, key::EMBEDDING_SCALE, key::ATTENTION_SCALE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granite",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::LOGIT_SCALE]],
    optional: &[HEADS, ROPE, EXPERT_KEYS, MULTIPLIERS, &[key::VOCAB_SIZE, key::DEEPSTACK_MAPPING]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
