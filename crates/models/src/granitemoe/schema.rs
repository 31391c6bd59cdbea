//! Metadata keys and tensors.

use crate::granite::schema::SCALES;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granitemoe",
    note: "Experts, or the network that is shared by all tokens alone.",
    required: &[SIZES, TRANSFORMER, RMS, &[key::LOGIT_SCALE]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        SCALES,
        &[key::VOCAB_SIZE, key::EXPERT_SHARED_FEED_FORWARD_LENGTH],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(LLAMA_LAYER)],
    ..Architecture::DEFAULT
};
