//! Metadata keys and tensors of `jina-bert-v3`.

use crate::bert::schema::{ATTENTION, FEED_FORWARD, TOKEN_TYPES};
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "jina-bert-v3",
    note: "BERT encoder with RoPE and an FFN without a gate.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::ATTENTION_CAUSAL, key::POOLING_TYPE, key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(TOKEN_TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[All(ATTENTION), All(FEED_FORWARD)])],
    ..Architecture::DEFAULT
};
