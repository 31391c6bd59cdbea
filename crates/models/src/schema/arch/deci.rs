//! Decoders whose layers differ in what they have, or are run through in cycles.

use super::layers;
use crate::schema::architecture::Item::{All, Required, When};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;

pub(super) static DECI: Architecture = Architecture {
    name: "deci",
    note: "Layers with heads and without heads of keys have one matrix for attention; layers without heads have none, and those of width 0 no feed-forward network.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        When("n_head", &[All(ATTN_NORM), Required("attn_output.weight", "n_embd, n_embd")]),
        When(
            "n_head_kv",
            &[
                Required("attn_q.weight", "n_embd, n_q"),
                Required("attn_k.weight", "n_embd, n_k"),
                Required("attn_v.weight", "n_embd, n_v"),
            ],
        ),
        When("n_ff", &[All(FFN_NORM), All(GATED_FFN)]),
    ])],
    open: false,
};

pub(super) static LLADA: Architecture = Architecture {
    name: "llada",
    note: "As llama, tokens are unmasked in any order.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &["vocab_size", "attention.causal", "pooling_type"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(GATED_FFN)])],
    open: false,
};

pub(super) static HRM_TEXT: Architecture = Architecture {
    name: "hrm_text",
    note: "Two stacks of layers, of which `block_count` tells how often each is run through altogether. Norms have no weights.",
    required: &[SIZES, TRANSFORMER, RMS, &["hrm.layers_per_stack", "hrm.h_cycles", "hrm.l_cycles"]],
    optional: &[HEADS, ROPE, &["embedding_scale", "hrm.prefix_lm"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(TIED_OUTPUT), Required("hrm.z_l_init", "n_embd")],
    blocks: &[Block {
        prefix: "blk.",
        from: "0",
        to: "2*n_stack",
        items: &[
            Required("attn_q.weight", "n_embd, n_q"),
            Required("attn_k.weight", "n_embd, n_k"),
            Required("attn_v.weight", "n_embd, n_v"),
            Required("attn_gate.weight", "n_embd, n_q"),
            All(ATTN_OUTPUT),
            All(GATED_FFN),
        ],
    }],
    open: false,
};
