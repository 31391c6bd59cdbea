//! Metadata keys and tensors of `qwen3next`.

use crate::schema::architecture::Item::{All, Maybe, OneOf, Required};
use crate::schema::architecture::{Architecture, Block, Item};
use crate::schema::groups::*;
use crate::schema::key;

/// Full attention, whose query projection includes the output gates.
pub(crate) const FULL_ATTENTION: &[Item] = &[
    Required("attn_q.weight", "n_embd, 2*n_q"),
    Required("attn_k.weight", "n_embd, n_k"),
    Required("attn_v.weight", "n_embd, n_v"),
    All(ATTN_OUTPUT),
    All(QK_NORMS),
];

/// Linear attention by the gated delta rule, without alpha and beta. Value heads share key heads.
pub(crate) const LINEAR_ATTENTION: &[Item] = &[
    Required("attn_qkv.weight", "n_embd, 2*n_group*d_state + d_inner"),
    Required("attn_gate.weight", "n_embd, d_inner"),
    Required("ssm_conv1d.weight", "d_conv, 2*n_group*d_state + d_inner"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "dt_rank"),
    Required("ssm_norm.weight", "d_inner/dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

/// Linear attention with one projection of beta and alpha.
const LINEAR_ATTENTION_FUSED: &[Item] =
    &[All(LINEAR_ATTENTION), Required("ssm_ba.weight", "n_embd, 2*dt_rank")];

pub(crate) const NORMS: &[Item] =
    &[All(ATTN_NORM), Required("post_attention_norm.weight", "n_embd")];

pub(crate) const SHARED_EXPERT: &[Item] = &[
    All(EXPERTS),
    Required("ffn_gate_inp_shexp.weight", "n_embd"),
    Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
    Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
];

pub(crate) const OPTIONAL: &[&[&str]] = &[
    HEADS,
    ROPE,
    &[
        "vocab_size",
        "attention.recurrent_layers",
        "full_attention_interval",
        "nextn_predict_layers",
        "rope.dimension_sections",
        "feed_forward_length",
        "expert_feed_forward_length",
        "expert_shared_feed_forward_length",
    ],
];

pub(crate) const TENSORS: &[Item] = &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "qwen3next",
    note: "Layers without `attn_q` have linear attention (gated delta rule).",
    required: &[
        SIZES,
        &[key::ATTENTION_HEAD_COUNT],
        RMS_NORM,
        EXPERT_KEYS,
        SSM,
        &[key::SSM_GROUP_COUNT],
    ],
    optional: OPTIONAL,
    tensors: TENSORS,
    blocks: &[
        Block {
            prefix: "blk.",
            from: "0",
            to: "n_trunk",
            items: &[
                All(NORMS),
                OneOf(&[FULL_ATTENTION, LINEAR_ATTENTION_FUSED]),
                All(SHARED_EXPERT),
            ],
        },
        Block {
            prefix: "blk.",
            from: "n_trunk",
            to: "n_layer",
            items: &[Maybe(NORMS), Maybe(FULL_ATTENTION), Maybe(SHARED_EXPERT), Maybe(MTP)],
        },
    ],
    ..Architecture::DEFAULT
};
