//! Metadata keys and tensors of `nemotron_h`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) const FFN_KEYS: &[&str] = &[key::VOCAB_SIZE, key::ATTENTION_LAYER_NORM_EPSILON];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nemotron_h",
    note: "Each layer is a Mamba 2 SSM, attention or an FFN.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SSM, &[key::SSM_GROUP_COUNT]],
    optional: &[HEADS, ROPE, FFN_KEYS],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), OneOf(&[MAMBA2, HYBRID_ATTENTION, FFN])])],
    ..Architecture::DEFAULT
};
