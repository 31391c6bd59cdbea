//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required, When};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deci",
    note: "Layers with heads and without heads of keys have one matrix for attention; layers without heads have none, and those of width 0 no feed-forward network.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
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
    ..Architecture::DEFAULT
};
