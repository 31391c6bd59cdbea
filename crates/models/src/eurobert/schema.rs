//! Metadata keys and tensors of `eurobert`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "eurobert",
    note: "As `llama`, with bidirectional attention.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[
        HEADS,
        ROPE,
        &[key::ATTENTION_CAUSAL, key::POOLING_TYPE, key::CLASSIFIER_POOLING_TYPE, key::VOCAB_SIZE],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
