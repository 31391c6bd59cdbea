//! Metadata keys and tensors of `qwen`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen",
    note: "First generation of Qwen. `feed_forward_length` is the sum of the gate and up projection widths.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, LAYER_NORM],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV_BIAS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        Required("ffn_gate.weight", "n_embd, n_ff/2"),
        Required("ffn_up.weight", "n_embd, n_ff/2"),
        Required("ffn_down.weight", "n_ff/2, n_embd"),
    ])],
    ..Architecture::DEFAULT
};
