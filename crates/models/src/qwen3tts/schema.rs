//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3tts",
    note: "As qwen3vl. Behind the tokens of texts stand codes of sound; what is drawn is one of these, of which programs take \
           3072 to be.",
    required: &[SIZES, TRANSFORMER, RMS, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), Required("output.weight", "n_embd, 3072")],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
