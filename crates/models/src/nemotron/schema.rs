//! Metadata keys and tensors of `nemotron`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nemotron",
    note: "FFN with squared ReLU, without gate.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, RMS_NORM, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        All(FFN_NORM_BIAS),
        All(FFN),
        Optional("ffn_up.bias", "n_ff"),
        Optional("ffn_down.bias", "n_embd"),
    ])],
    ..Architecture::DEFAULT
};
