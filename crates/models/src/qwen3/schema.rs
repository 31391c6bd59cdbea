//! Metadata keys and tensors of `qwen3`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[key::VOCAB_SIZE, key::POOLING_TYPE, key::CLASSIFIER_OUTPUT_LABELS],
    ],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("cls.output.weight", "n_embd, n_classes"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(QK_NORMS),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
