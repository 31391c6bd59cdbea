//! Text models that came with an encoder of images.

use super::layers;
use crate::schema::architecture::Item::{self, All, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

const LAYER: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)];

pub(super) static PADDLEOCR: Architecture = Architecture {
    name: "paddleocr",
    note: "As ernie4_5; positions have three dimensions.",
    required: &[SIZES, TRANSFORMER, RMS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(LAYER)],
    open: false,
};

pub(super) static HUNYUAN_VL: Architecture = Architecture {
    name: "hunyuan_vl",
    note: "As hunyuan-dense; positions have four dimensions.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["rope.dimension_sections", "rope.scaling.alpha"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(LAYER), All(HEAD_NORMS)])],
    open: false,
};

const CHAMELEON_NORMS: &[Item] = &[
    Required("attn_q_norm.weight", "head_k, n_head"),
    Required("attn_q_norm.bias", "head_k, n_head"),
    Required("attn_k_norm.weight", "head_k, n_head_kv"),
    Required("attn_k_norm.bias", "head_k, n_head_kv"),
];

pub(super) static CHAMELEON: Architecture = Architecture {
    name: "chameleon",
    note: "Images are tokens, of which the tokenizer of images is no part.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["swin_norm"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(LAYER), All(CHAMELEON_NORMS)])],
    open: false,
};

pub(super) static COGVLM: Architecture = Architecture {
    name: "cogvlm",
    note: "Images go through matrices of their own, `vis_...`.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        Required("vis_attn_qkv.weight", "n_embd, n_q + n_k + n_v"),
        Required("vis_attn_output.weight", "n_q, n_embd"),
        Required("vis_gate.weight", "n_embd, n_ff"),
        Required("vis_up.weight", "n_embd, n_ff"),
        Required("vis_down.weight", "n_ff, n_embd"),
    ])],
    open: false,
};

const OCR_ATTENTION: &[Item] = &[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM)];

pub(super) static DEEPSEEK2_OCR: Architecture = Architecture {
    name: "deepseek2-ocr",
    note: "As deepseek2, with attention as in llama.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS, &["expert_shared_count"]],
    optional: &[HEADS, ROPE, ROUTED_KEYS, &["vocab_size", "attention.sliding_window"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_dense",
            items: &[All(OCR_ATTENTION), All(GATED_FFN)],
        },
        Block {
            prefix: "blk.",
            from: "n_dense",
            to: "n_layer",
            items: &[All(OCR_ATTENTION), All(ROUTED_EXPERTS)],
        },
    ],
    open: false,
};
