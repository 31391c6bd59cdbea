//! Llama, and models that differ from it in keys only.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

const OPTIONAL: &[&[&str]] = &[
    HEADS,
    ROPE,
    MIXTURE,
    &["vocab_size", "tensor_data_layout", "expert_shared_feed_forward_length"],
];
const SCALES: &[&str] = &["residual_scale", "embedding_scale", "attention.scale"];

pub(super) static LLAMA: Architecture = Architecture {
    name: "llama",
    note: "Also Mistral, Mixtral and others. `tensor_data_layout` is `Meta AI original pth` \
           where queries and keys are laid out for rotation of neighbours.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: OPTIONAL,
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static GRANITE: Architecture = Architecture {
    name: "granite",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[HEADS, ROPE, MIXTURE, SCALES, &["vocab_size", "deepstack_mapping"]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static MINICPM: Architecture = Architecture {
    name: "minicpm",
    note: "Without the scales, programs take those of the first models.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, MIXTURE, SCALES, &["vocab_size", "logit_scale"]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    open: false,
};

pub(super) static INTERNLM2: Architecture = Architecture {
    name: "internlm2",
    note: "",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};
