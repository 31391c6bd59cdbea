//! Metadata keys and tensors of `plamo`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// RoPE keys of models without RoPE scaling.
pub(crate) const UNSCALED_ROPE: &[&str] = &[key::ROPE_DIMENSION_COUNT, key::ROPE_FREQ_BASE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "plamo",
    note: "Attention and FFN run in parallel on the same normalized input.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, UNSCALED_ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
