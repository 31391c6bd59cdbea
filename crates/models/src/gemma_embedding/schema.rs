//! Metadata keys and tensors of `gemma-embedding`.

use crate::gemma2::schema::SOFT_CAPS;
use crate::gemma3::schema::GEMMA3_LAYER;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

/// Sizes of the dense layers after pooling, named by their module folders in sentence-transformers.
const DENSE_KEYS: &[&str] =
    &[key::DENSE_2_FEAT_IN, key::DENSE_2_FEAT_OUT, key::DENSE_3_FEAT_IN, key::DENSE_3_FEAT_OUT];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma-embedding",
    note: "Gemma 3 as an embedding model: attention is bidirectional, with a symmetric sliding \
           window of half its length on each side.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ATTENTION_SLIDING_WINDOW]],
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        SOFT_CAPS,
        DENSE_KEYS,
        &[key::ATTENTION_CAUSAL, key::POOLING_TYPE],
    ],
    defaults: &[
        (key::ROPE_FREQ_BASE_SWA, DefaultValue::Number(10000.0)),
        (key::ATTENTION_CAUSAL, DefaultValue::Flag(false)),
    ],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM),
        All(TIED_OUTPUT),
        Optional("dense_2.weight", "n_embd, dense_2_out"),
        Optional("dense_3.weight", "dense_3_in, n_embd"),
    ],
    blocks: &[layers(GEMMA3_LAYER)],
    ..Architecture::DEFAULT
};
