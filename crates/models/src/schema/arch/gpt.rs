//! Transformers of the first years: norms with bias, feed-forward without gate.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional, Required};
use crate::schema::groups::*;
use crate::schema::key::Absent;

pub(super) static GPT2: Architecture = Architecture {
    name: "gpt2",
    note: "",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(POSITIONS), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    open: false,
};

pub(super) static GPTJ: Architecture = Architecture {
    name: "gptj",
    note: "llama.cpp neither writes nor runs it: keys as in the specification, tensors \
           named as in phi2, which has the same layout but for biases.",
    required: &[SIZES, TRANSFORMER, NORM, &["rope.dimension_count"]],
    optional: &[ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        All(OUTPUT_NORM_BIAS),
        All(TIED_OUTPUT),
        Optional("output.bias", "n_vocab"),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        All(FFN_BIAS),
    ])],
    open: false,
};

pub(super) static GPTNEOX: Architecture = Architecture {
    name: "gptneox",
    note: "llama.cpp's converter forgets `rope.freq_base`.",
    required: &[SIZES, TRANSFORMER, NORM, &["use_parallel_residual", "rope.dimension_count"]],
    optional: &[ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    open: false,
};

pub(super) static BLOOM: Architecture = Architecture {
    name: "bloom",
    note: "The bias of ALiBi is 8 without a key.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS],
    defaults: &[("attention.max_alibi_bias", Absent::Number(8.0))],
    tensors: &[All(EMBEDDING), All(EMBEDDING_NORM), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    open: false,
};

pub(super) static MPT: Architecture = Architecture {
    name: "mpt",
    note: "The specification asks for `attention.alibi_bias_max` and `attention.clip_kqv`; \
           programs write and read `attention.max_alibi_bias` and `attention.clamp_kqv`.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, &["attention.max_alibi_bias", "attention.clamp_kqv"]],
    defaults: &[],
    tensors: &[
        All(EMBEDDING),
        Optional("position_embd.weight", "n_embd, n_ctx"),
        All(OUTPUT_NORM),
        Optional("output_norm.bias", "n_embd"),
        All(TIED_OUTPUT),
    ],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Optional("attn_norm.bias", "n_embd"),
        All(FUSED_QKV),
        Optional("attn_qkv.bias", "n_q + n_k + n_v"),
        All(ATTN_OUTPUT),
        Optional("attn_output.bias", "n_embd"),
        Optional("attn_q_norm.weight", "n_embd"),
        Optional("attn_q_norm.bias", "n_embd"),
        Optional("attn_k_norm.weight", "n_embd"),
        Optional("attn_k_norm.bias", "n_embd"),
        All(FFN_NORM),
        Optional("ffn_norm.bias", "n_embd"),
        All(FFN),
        Optional("ffn_up.bias", "n_ff"),
        Optional("ffn_down.bias", "n_embd"),
        Optional("ffn.act.scales", "n_ff"),
    ])],
    open: false,
};

pub(super) static STARCODER: Architecture = Architecture {
    name: "starcoder",
    note: "Also SantaCoder: gpt2, mostly with one head of keys and values.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(POSITIONS), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    open: false,
};

pub(super) static CODESHELL: Architecture = Architecture {
    name: "codeshell",
    note: "gpt2 with rotary positions and shared heads of keys and values.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(GPT_LAYER)],
    open: false,
};

pub(super) static STARCODER2: Architecture = Architecture {
    name: "starcoder2",
    note: "",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, WINDOW],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        Required("attn_output.bias", "n_embd"),
        All(FFN_NORM_BIAS),
        All(FFN_BIAS),
    ])],
    open: false,
};

pub(super) static JAIS: Architecture = Architecture {
    name: "jais",
    note: "As GPT-2 with gates, and with ALiBi for positions.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, &["attention.max_alibi_bias"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(GPT_LAYER),
        Required("ffn_gate.weight", "n_embd, n_ff"),
        Required("ffn_gate.bias", "n_ff"),
    ])],
    open: false,
};
