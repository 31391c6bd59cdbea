//! Metadata keys and tensors of `nomic-bert-moe`.

use crate::bert::schema::{ATTENTION, FFN_BIASES_AND_NORM, TOKEN_TYPES};
use crate::schema::architecture::Item::{All, OneOf, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// FFN of a layer, dense or MoE.
const DENSE_OR_MOE_FFN: &[Item] = &[
    OneOf(&[
        FFN,
        &[
            Required("ffn_gate_inp.weight", "n_embd, n_expert"),
            Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
            Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
        ],
    ]),
    All(FFN_BIASES_AND_NORM),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nomic-bert-moe",
    note: "Bidirectional post-norm encoder with RoPE; every `moe_every_n_layers` layers an MoE.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[key::ATTENTION_CAUSAL, key::POOLING_TYPE, key::VOCAB_SIZE, key::MOE_EVERY_N_LAYERS],
    ],
    tensors: &[All(EMBEDDING), All(TOKEN_TYPES), All(EMBEDDING_NORM)],
    blocks: &[layers(&[All(ATTENTION), All(DENSE_OR_MOE_FFN)])],
    ..Architecture::DEFAULT
};
