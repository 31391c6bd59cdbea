//! State spaces beside attention or in place of it: Jamba, Granite 4, Bamba, Falcon H1.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, OneOf, Optional, Required, Unless, When};
use crate::schema::groups::*;

const ATTENTION: &[Item] = &[All(QKV), All(ATTN_OUTPUT), Optional("attn_output.bias", "n_embd")];

/// A state space of the first generation, whose rates, inputs and outputs are normalized.
const FIRST: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner"),
    Required("ssm_conv1d.weight", "d_conv, d_inner"),
    Required("ssm_conv1d.bias", "d_inner"),
    Required("ssm_x.weight", "d_inner, dt_rank + 2*d_state"),
    Required("ssm_dt_norm.weight", "dt_rank"),
    Required("ssm_b_norm.weight", "d_state"),
    Required("ssm_c_norm.weight", "d_state"),
    Required("ssm_dt.weight", "dt_rank, d_inner"),
    Required("ssm_dt.bias", "d_inner"),
    Required("ssm_a", "d_state, d_inner"),
    Required("ssm_d", "d_inner"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

/// One of the second generation.
const SECOND: &[Item] =
    &[All(SECOND_WITHOUT_NORM), Required("ssm_norm.weight", "d_inner/n_group, n_group")];
const SECOND_WITHOUT_NORM: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner + 2*n_group*d_state + dt_rank"),
    Required("ssm_conv1d.weight", "d_conv, d_inner + 2*n_group*d_state"),
    Optional("ssm_conv1d.bias", "d_inner + 2*n_group*d_state"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "1, dt_rank"),
    Required("ssm_d", "1, dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

const EXPERTS_OF_FULL_WIDTH: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
];

pub(super) static JAMBA: Architecture = Architecture {
    name: "jamba",
    note: "Layers without heads of keys and values have a state space.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, EXPERT_KEYS],
    optional: &[HEADS, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", ATTENTION),
        Unless("n_head_kv", FIRST),
        All(FFN_NORM),
        OneOf(&[GATED_FFN, EXPERTS_OF_FULL_WIDTH]),
    ])],
    open: false,
};

pub(super) static GRANITE_HYBRID: Architecture = Architecture {
    name: "granitehybrid",
    note: "Granite 4 and Bamba. Layers without heads of keys and values have a state space. Positions rotate if `rope.scaling.finetuned` is true.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, &["ssm.group_count"]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[
            "vocab_size",
            "attention.scale",
            "embedding_scale",
            "residual_scale",
            "logit_scale",
            "expert_shared_feed_forward_length",
        ],
    ],
    defaults: &[],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", ATTENTION),
        Unless("n_head_kv", SECOND),
        All(FFN_NORM),
        Unless("n_expert", GATED_FFN),
        When("n_expert", LLAMA_EXPERTS),
    ])],
    open: false,
};

const HYBRID_KEYS: &[&str] = &["ssm.group_count"];
const NETWORK_KEYS: &[&str] = &["vocab_size", "attention.layer_norm_epsilon"];

pub(super) static NEMOTRON_H: Architecture = Architecture {
    name: "nemotron_h",
    note: "Each layer is a state space, attention, or a feed-forward network.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, HYBRID_KEYS],
    optional: &[HEADS, ROPE, NETWORK_KEYS],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), OneOf(&[SECOND, ATTENTION, FFN])])],
    open: false,
};

/// Experts without gates, beside one that is always asked.
const UNGATED_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Optional("exp_probs_b.bias", "n_expert"),
    Required("ffn_up_exps.weight", "n_latent, n_ff_exp, n_expert"),
    Required("ffn_down_exps.weight", "n_ff_exp, n_latent, n_expert"),
    Optional("ffn_latent_down.weight", "n_embd, n_latent"),
    Optional("ffn_latent_up.weight", "n_latent, n_embd"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(super) static NEMOTRON_H_MOE: Architecture = Architecture {
    name: "nemotron_h_moe",
    note: "As nemotron_h, with experts.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, HYBRID_KEYS, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        NETWORK_KEYS,
        ROUTED_KEYS,
        &["expert_shared_feed_forward_length", "moe_latent_size", "nextn_predict_layers"],
    ],
    defaults: &[],
    tensors: NEMOTRON_H.tensors,
    blocks: &[layers(&[All(ATTN_NORM), OneOf(&[SECOND, ATTENTION, FFN, UNGATED_EXPERTS])])],
    open: false,
};

pub(super) static FALCON_H1: Architecture = Architecture {
    name: "falcon-h1",
    note: "Every layer has a state space and attention. The factors of the configuration are in the weights.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, HYBRID_KEYS],
    optional: &[HEADS, ROPE, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(ATTENTION),
        All(SECOND_WITHOUT_NORM),
        Optional("ssm_norm.weight", "d_inner/n_group, n_group"),
        // Without an end, which programs do not expect of it.
        Required("ffn_norm", "n_embd"),
        All(GATED_FFN),
    ])],
    open: false,
};
