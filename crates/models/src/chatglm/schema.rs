//! Metadata keys and tensors of `chatglm`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "chatglm",
    note: "ChatGLM 3 and the first GLM 4.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(FFN_NORM),
        All(FUSED_GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
