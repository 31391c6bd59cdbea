//! Metadata keys and tensors of `qwen3tts`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3tts",
    note: "As qwen3vl. The vocabulary has the text tokens, then the audio codes; the output matrix \
           covers audio codes only, of which runtimes expect 3072.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ROPE_DIMENSION_SECTIONS]],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), Required("output.weight", "n_embd, 3072")],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(QK_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
