//! Metadata keys and tensors of `olmoe`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "olmoe",
    note: "Router weights of the selected experts are not renormalized.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(FFN_NORM),
        All(LLAMA_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
