//! Metadata keys and tensors of `phimoe`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "phimoe",
    note: "Phi-3.5-MoE.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(OUTPUT),
        Required("output.bias", "n_vocab"),
        All(LONG_ROPE),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT_BIAS),
        All(FFN_NORM_BIAS),
        All(LLAMA_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
