//! Metadata keys and tensors of `jamba`.

use crate::schema::architecture::Item::{All, OneOf, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// Mamba layer with RMS norms of time step, B and C.
const MAMBA_WITH_NORMS: &[Item] = &[
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

/// MoE whose experts have the FFN size of the model.
const FULL_SIZE_EXPERTS: &[Item] = &[
    Required("ffn_gate_inp.weight", "n_embd, n_expert"),
    Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
    Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "jamba",
    note: "Layers with 0 KV heads are Mamba layers.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, SSM, EXPERT_KEYS],
    optional: &[HEADS, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", HYBRID_ATTENTION),
        Unless("n_head_kv", MAMBA_WITH_NORMS),
        All(FFN_NORM),
        OneOf(&[GATED_FFN, FULL_SIZE_EXPERTS]),
    ])],
    ..Architecture::DEFAULT
};
