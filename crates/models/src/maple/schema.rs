//! Metadata keys and tensors of `maple`.

use crate::mellum;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;
use crate::schema::key;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "maple",
    note: "As mellum; full-attention layers have no RoPE, and SwiGLU experts are clamped.",
    required: mellum::schema::SCHEMA.required,
    optional: &[
        HEADS,
        ROPE,
        SLIDING_WINDOW,
        &[key::VOCAB_SIZE, key::EXPERT_FEED_FORWARD_LENGTH, key::SWIGLU_CLAMP_EXP],
    ],
    tensors: mellum::schema::SCHEMA.tensors,
    blocks: mellum::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
