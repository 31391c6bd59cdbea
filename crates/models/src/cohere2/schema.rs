//! Metadata keys and tensors of `cohere2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "cohere2",
    note: "Attention and FFN are parallel and share one layer norm. Every fourth layer has full \
           attention without RoPE; the others have a sliding window.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM, &[key::LOGIT_SCALE, key::ATTENTION_SLIDING_WINDOW]],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
