//! Metadata keys and tensors of `gptj`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gptj",
    note: "Not implemented in llama.cpp: keys follow the GGUF specification, tensors are \
           named as in phi2, which has the same layout but for biases.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM, &[key::ROPE_DIMENSION_COUNT]],
    optional: &[ROPE, &[key::VOCAB_SIZE]],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(TIED_OUTPUT),
        Optional("output.bias", "n_vocab"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        All(FFN_BIAS),
    ])],
    ..Architecture::DEFAULT
};
