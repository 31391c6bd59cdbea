//! Grok and GroveMoE: more than a router and its experts in a layer.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Maybe, OneOf, Required};
use crate::schema::groups::*;

pub(super) static GROK: Architecture = Architecture {
    name: "grok",
    note: "Experts, beside a dense network in Grok 2.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &[
            "attn_logit_softcapping",
            "router_logit_softcapping",
            "final_logit_softcapping",
            "expert_feed_forward_length",
            "attention.temperature_length",
            "attention.output_scale",
            "embedding_scale",
            "logit_scale",
        ],
    ],
    defaults: &[],
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
    open: false,
};

pub(super) static GROVEMOE: Architecture = Architecture {
    name: "grovemoe",
    note: "Experts of a group share a smaller one, `..._chexps`.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &[
            "expert_feed_forward_length",
            "expert_chunk_feed_forward_length",
            "experts_per_group",
            "expert_group_scale",
        ],
    ],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(HEAD_NORMS),
        All(FFN_NORM),
        All(EXPERTS),
        Required("ffn_gate_chexps.weight", "n_embd, n_ff_chunk, n_expert/n_grove"),
        Required("ffn_up_chexps.weight", "n_embd, n_ff_chunk, n_expert/n_grove"),
        Required("ffn_down_chexps.weight", "n_ff_chunk, n_embd, n_expert/n_grove"),
    ])],
    open: false,
};

pub(super) static ARCTIC: Architecture = Architecture {
    name: "arctic",
    note: "A dense network as wide as the model beside the experts, which read a norm of their own.",
    required: &[SIZES, TRANSFORMER, RMS, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        Required("ffn_gate.weight", "n_embd, n_embd"),
        Required("ffn_up.weight", "n_embd, n_embd"),
        Required("ffn_down.weight", "n_embd, n_embd"),
        Required("ffn_norm_exps.weight", "n_embd"),
        Required("ffn_gate_inp.weight", "n_embd, n_expert"),
        Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    ])],
    open: false,
};
