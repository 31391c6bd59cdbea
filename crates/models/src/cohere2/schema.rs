//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "cohere2",
    note: "Attention and feed-forward share one norm; of four layers the last has no window and \
           does not rotate.",
    required: &[SIZES, TRANSFORMER, NORM, &[key::LOGIT_SCALE, key::ATTENTION_SLIDING_WINDOW]],
    optional: &[HEADS, ROPE, WINDOW, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
