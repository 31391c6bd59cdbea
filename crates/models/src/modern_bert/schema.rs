//! Metadata keys and tensors of `modern-bert`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "modern-bert",
    note: "Bidirectional encoder with RoPE. Symmetric sliding window in all layers but the first of \
           each three, unless the pattern key says otherwise. The first layer has no norm before \
           attention.",
    required: &[SIZES, TRANSFORMER],
    optional: &[
        LAYER_NORM,
        RMS_NORM,
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[
            key::ATTENTION_CAUSAL,
            key::POOLING_TYPE,
            key::CLASSIFIER_OUTPUT_LABELS,
            key::CLASSIFIER_POOLING_TYPE,
            key::VOCAB_SIZE,
            key::HIDDEN_ACTIVATION,
        ],
    ],
    tensors: &[
        All(EMBEDDING),
        Required("token_embd_norm.weight", "n_embd"),
        All(OUTPUT_NORM),
        Optional("cls.weight", "n_embd, n_embd"),
        Optional("cls.norm.weight", "n_embd"),
        Optional("cls.output.weight", "n_embd, n_classes"),
        Optional("cls.output.bias", "n_classes"),
    ],
    blocks: &[layers(&[
        Optional("attn_norm.weight", "n_embd"),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
