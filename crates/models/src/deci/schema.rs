//! Metadata keys and tensors of `deci`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required, When};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "deci",
    note: "The number of KV heads differs between layers. Layers without KV heads have one \
           linear projection instead of attention, layers without heads have no attention, and \
           layers with an FFN size of 0 have no FFN.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
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
