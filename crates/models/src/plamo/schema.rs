//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

/// Positions are not stretched.
pub(crate) const ROTATION: &[&str] = &[key::ROPE_DIMENSION_COUNT, key::ROPE_FREQ_BASE];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "plamo",
    note: "Attention and feed-forward layer read the same norm.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROTATION],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(GATED_FFN)])],
    ..Architecture::DEFAULT
};
