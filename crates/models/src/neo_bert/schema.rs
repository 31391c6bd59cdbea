//! Metadata keys and tensors of `neo-bert`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "neo-bert",
    note: "Bidirectional pre-norm encoder with RoPE; SwiGLU with gate and up projection in one matrix.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[
        HEADS,
        ROPE,
        &[key::ATTENTION_CAUSAL, key::POOLING_TYPE, key::CLASSIFIER_OUTPUT_LABELS, key::VOCAB_SIZE],
    ],
    tensors: &[
        All(EMBEDDING),
        Required("enc.output_norm.weight", "n_embd"),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.bias", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
