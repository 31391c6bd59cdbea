//! Metadata keys and tensors of `nemotron_h_moe`.

use crate::nemotron_h;
use crate::nemotron_h::schema::FFN_KEYS;
use crate::schema::architecture::Item::{All, OneOf, Optional, Required};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Experts without gate, and a shared expert.
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

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "nemotron_h_moe",
    note: "As nemotron_h, with MoE layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SSM, &[key::SSM_GROUP_COUNT], EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        FFN_KEYS,
        DEEPSEEK_MOE_KEYS,
        &[key::EXPERT_SHARED_FEED_FORWARD_LENGTH, key::MOE_LATENT_SIZE, key::NEXTN_PREDICT_LAYERS],
    ],
    tensors: nemotron_h::schema::SCHEMA.tensors,
    blocks: &[layers(&[All(ATTN_NORM), OneOf(&[MAMBA2, HYBRID_ATTENTION, FFN, UNGATED_EXPERTS])])],
    ..Architecture::DEFAULT
};
