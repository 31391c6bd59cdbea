//! Metadata keys and tensors of `llama`.

use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::layers;

/// Optional keys.
const OPTIONAL: &[&[&str]] = &[
    HEADS,
    ROPE,
    SLIDING_WINDOW,
    EXPERT_KEYS,
    &["vocab_size", "tensor_data_layout", "expert_shared_feed_forward_length"],
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "llama",
    note: "Also Mistral, Mixtral and others. `tensor_data_layout` is `Meta AI original pth` \
           where Q and K are in the interleaved RoPE layout.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: OPTIONAL,
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
