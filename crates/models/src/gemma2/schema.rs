//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key::Absent;
use crate::schema::layers;

pub(crate) const SOFT_CAPS: &[&str] = &["attn_logit_softcapping", "final_logit_softcapping"];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma2",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, SOFT_CAPS],
    defaults: &[
        ("attn_logit_softcapping", Absent::Number(50.0)),
        ("final_logit_softcapping", Absent::Number(30.0)),
        ("attention.sliding_window", Absent::Size("4096")),
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        All(POST_NORMS),
    ])],
    ..Architecture::DEFAULT
};
