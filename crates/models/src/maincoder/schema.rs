//! Metadata keys and tensors of `maincoder`.

use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "maincoder",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(QK_NORM_LAYER)],
    ..Architecture::DEFAULT
};

/// Layer of a Llama decoder with QK-norm per head.
pub(crate) const QK_NORM_LAYER: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(QK_NORMS), All(FFN_NORM), All(GATED_FFN)];
