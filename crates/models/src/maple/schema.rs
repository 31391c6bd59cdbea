//! Metadata keys and tensors.

use crate::mellum;
use crate::schema::architecture::Architecture;
use crate::schema::groups::*;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "maple",
    note: "Layers without a window do not rotate.",
    required: mellum::schema::SCHEMA.required,
    optional: &[
        HEADS,
        ROPE,
        WINDOW,
        &["vocab_size", "expert_feed_forward_length", "swiglu_clamp_exp"],
    ],
    tensors: mellum::schema::SCHEMA.tensors,
    blocks: mellum::schema::SCHEMA.blocks,
    ..Architecture::DEFAULT
};
