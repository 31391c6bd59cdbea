//! Metadata keys and tensors of `chameleon`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

const HEAD_LAYER_NORMS: &[Item] = &[
    Required("attn_q_norm.weight", "head_k, n_head"),
    Required("attn_q_norm.bias", "head_k, n_head"),
    Required("attn_k_norm.weight", "head_k, n_head_kv"),
    Required("attn_k_norm.bias", "head_k, n_head_kv"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "chameleon",
    note: "Images are tokens of the vocabulary; the image tokenizer is not part of the file.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::SWIN_NORM]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(SWIGLU_LAYER), All(HEAD_LAYER_NORMS)])],
    ..Architecture::DEFAULT
};
