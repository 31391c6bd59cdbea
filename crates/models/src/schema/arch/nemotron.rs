//! Nemotron, and other decoders that differ from llama in single parts.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;

pub(super) static NEMOTRON: Architecture = Architecture {
    name: "nemotron",
    note: "Feed-forward without a gate, by the square of what is positive.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, RMS, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        All(FFN_NORM_BIAS),
        All(FFN),
        Optional("ffn_up.bias", "n_ff"),
        Optional("ffn_down.bias", "n_embd"),
    ])],
    open: false,
};

pub(super) static OPENELM: Architecture = Architecture {
    name: "openelm",
    note: "Heads and widths differ from layer to layer.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, &["rope.dimension_count", "rope.freq_base"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static DBRX: Architecture = Architecture {
    name: "dbrx",
    note: "",
    required: &[SIZES, TRANSFORMER, NORM, EXPERT_KEYS, &["attention.clamp_kqv"]],
    optional: &[HEADS, &["rope.dimension_count", "rope.freq_base"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        Required("attn_output_norm.weight", "n_embd"),
        Required("ffn_gate_inp.weight", "n_embd, n_expert"),
        Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    ])],
    open: false,
};

pub(super) static REFACT: Architecture = Architecture {
    name: "refact",
    note: "ALiBi with a bias of 8, without a key.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};
