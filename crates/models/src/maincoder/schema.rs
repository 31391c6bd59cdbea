//! Metadata keys and tensors of `maincoder`.

use crate::schema::architecture::Item::All;
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "maincoder",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(NORMED_HEADS)],
    ..Architecture::DEFAULT
};

/// A layer with norms of each head's queries and keys.
pub(crate) const NORMED_HEADS: &[Item] =
    &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(HEAD_NORMS), All(FFN_NORM), All(GATED_FFN)];
