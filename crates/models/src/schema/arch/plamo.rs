//! PLaMo.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{self, All, Required, Unless, When};
use crate::schema::groups::*;

/// Positions are not stretched.
const ROTATION: &[&str] = &["rope.dimension_count", "rope.freq_base"];

pub(super) static PLAMO: Architecture = Architecture {
    name: "plamo",
    note: "Attention and feed-forward layer read the same norm.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROTATION],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(GATED_FFN)])],
    open: false,
};

/// Norms behind a part have no `.weight` in their names.
const NETWORK: &[Item] = &[
    Required("post_attention_norm", "n_embd"),
    All(FFN_NORM),
    All(FUSED_GATED_FFN),
    Required("post_ffw_norm", "n_embd"),
];
const ATTENTION: &[Item] = &[
    All(FUSED_QKV),
    Required("attn_q_norm.weight", "head_k, n_head"),
    Required("attn_k_norm.weight", "head_k, n_head_kv"),
    All(ATTN_OUTPUT),
];
const STATE: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner"),
    Required("ssm_conv1d.weight", "d_conv, d_inner"),
    Required("ssm_x.weight", "d_inner, untold"),
    Required("ssm_dt.weight", "untold, dt_rank"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "dt_rank"),
    Required("ssm_d", "dt_rank"),
    Required("ssm_dt_norm", "untold"),
    Required("ssm_b_norm", "d_state"),
    Required("ssm_c_norm", "d_state"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

pub(super) static PLAMO2: Architecture = Architecture {
    name: "plamo2",
    note: "Layers without heads of keys and values have a state space. Gate and input of feed-forward layers are one matrix.",
    required: &[SIZES, RMS, STATE_SPACE, &["feed_forward_length", "ssm.group_count"]],
    optional: &[&["attention.head_count"], HEADS, ROTATION, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", ATTENTION),
        Unless("n_head_kv", STATE),
        All(NETWORK),
    ])],
    open: false,
};

pub(super) static PLAMO3: Architecture = Architecture {
    name: "plamo3",
    note: "Gate and input of feed-forward layers are one matrix.",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE, WINDOW, &["vocab_size"]],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(NETWORK),
    ])],
    open: false,
};
