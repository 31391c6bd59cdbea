//! Metadata keys and tensors of `openelm`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "openelm",
    note: "Head counts and FFN widths differ between layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, &[key::ROPE_DIMENSION_COUNT, key::ROPE_FREQ_BASE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(QK_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
