//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) const HYBRID_KEYS: &[&str] = &[key::SSM_GROUP_COUNT];

pub(crate) const NETWORK_KEYS: &[&str] = &[key::VOCAB_SIZE, key::ATTENTION_LAYER_NORM_EPSILON];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nemotron_h",
    note: "Each layer is a state space, attention, or a feed-forward network.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, HYBRID_KEYS],
    optional: &[HEADS, ROPE, NETWORK_KEYS],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), OneOf(&[MAMBA2, HYBRID_ATTENTION, FFN])])],
    ..Architecture::DEFAULT
};
