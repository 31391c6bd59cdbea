//! Metadata keys and tensors of `nomic-bert`.

use crate::bert::schema::{ATTENTION, FEED_FORWARD, TOKEN_TYPES};
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nomic-bert",
    note: "Bidirectional post-norm encoder with RoPE and SwiGLU.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::ATTENTION_CAUSAL, key::POOLING_TYPE, key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(TOKEN_TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[
        All(ATTENTION),
        Required("ffn_gate.weight", "n_embd, n_ff"),
        All(FEED_FORWARD),
    ])],
    ..Architecture::DEFAULT
};
