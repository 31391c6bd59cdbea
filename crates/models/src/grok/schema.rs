//! Metadata keys and tensors of `grok`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "grok",
    note: "MoE; in Grok 2 a dense FFN runs in parallel.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::ATTN_LOGIT_SOFTCAPPING,
            key::ROUTER_LOGIT_SOFTCAPPING,
            key::FINAL_LOGIT_SOFTCAPPING,
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::ATTENTION_TEMPERATURE_LENGTH,
            key::ATTENTION_OUTPUT_SCALE,
            key::EMBEDDING_SCALE,
            key::LOGIT_SCALE,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_output_norm.weight", "n_embd"),
        All(FFN_NORM),
        Maybe(GATED_FFN),
        Required("ffn_gate_inp.weight", "n_embd, n_expert"),
        Required("ffn_gate_exps.weight", "n_embd, n_ff_grok, n_expert"),
        Required("ffn_up_exps.weight", "n_embd, n_ff_grok, n_expert"),
        Required("ffn_down_exps.weight", "n_ff_grok, n_embd, n_expert"),
        OneOf(&[
            &[Required("layer_output_norm.weight", "n_embd")],
            &[Required("post_ffw_norm.weight", "n_embd")],
        ]),
    ])],
    ..Architecture::DEFAULT
};
