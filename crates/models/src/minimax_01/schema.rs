//! Metadata keys and tensors of `minimax-01`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, OneOf, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minimax-01",
    note: "MiniMax-Text-01 and M1. Every eighth layer has softmax attention, the others \
           lightning (linear) attention with a gate.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS, &[key::RESIDUAL_SCALE]],
    optional: &[HEADS, ROPE, &[key::FULL_ATTENTION_INTERVAL, key::ATTENTION_RECURRENT_LAYERS]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        OneOf(&[
            &[
                Required("attn_qkv.weight", "n_embd, 3*n_q"),
                Required("attn_gate.weight", "n_embd, n_q"),
                Required("attn_norm_2.weight", "n_q"),
            ],
            &[
                Required("attn_q.weight", "n_embd, n_q"),
                Required("attn_k.weight", "n_embd, n_k"),
                Required("attn_v.weight", "n_embd, n_v"),
            ],
        ]),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(LLAMA_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
