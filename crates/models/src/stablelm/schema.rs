//! Metadata keys and tensors of `stablelm`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Maybe};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "stablelm",
    note: "The 12B model has QK-norms, and no norm before the FFN.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::USE_PARALLEL_RESIDUAL]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        All(PER_HEAD_QK_NORMS),
        Maybe(FFN_NORM_BIAS),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
