//! Metadata keys and tensors of `gemma2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

pub(crate) const SOFT_CAPS: &[&str] = &[key::ATTN_LOGIT_SOFTCAPPING, key::FINAL_LOGIT_SOFTCAPPING];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gemma2",
    note: "Sandwich norms; every other layer has a sliding window, beginning with the first.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, SOFT_CAPS],
    defaults: &[
        (key::ATTN_LOGIT_SOFTCAPPING, DefaultValue::Number(50.0)),
        (key::FINAL_LOGIT_SOFTCAPPING, DefaultValue::Number(30.0)),
        (key::ATTENTION_SLIDING_WINDOW, DefaultValue::Size("4096")),
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
