//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "eurobert",
    note: "As llama, every token sees all others.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[
        HEADS,
        ROPE,
        &["attention.causal", "pooling_type", "classifier.pooling_type", "vocab_size"],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
