//! Metadata keys and tensors.

use crate::granite::schema::SCALES;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granitemoe",
    note: "Experts, or the network that is shared by all tokens alone.",
    required: &[SIZES, TRANSFORMER, RMS, &["logit_scale"]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        SCALES,
        &["vocab_size", "expert_shared_feed_forward_length"],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
