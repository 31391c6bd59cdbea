//! Metadata keys and tensors of `phi3`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "phi3",
    note: "Phi-3 and Phi-4.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT), All(LONG_ROPE)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
