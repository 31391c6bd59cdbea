//! Metadata keys and tensors of `orion`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "orion",
    note: "As llama, with layer norms.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::TENSOR_DATA_LAYOUT]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM_BIAS),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
