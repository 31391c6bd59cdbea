//! Metadata keys and tensors of `plamo2`.

use crate::plamo::schema::UNSCALED_ROPE;
use crate::schema::architecture::Item::{All, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::{key, layers};

/// FFN with its norms, after the norm of the mixer. The names of post-norms have no `.weight`.
pub(crate) const FFN_WITH_POST_NORMS: &[Item] = &[
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

const MAMBA: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner"),
    Required("ssm_conv1d.weight", "d_conv, d_inner"),
    Required("ssm_x.weight", "d_inner, undetermined"),
    Required("ssm_dt.weight", "undetermined, dt_rank"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "dt_rank"),
    Required("ssm_d", "dt_rank"),
    Required("ssm_dt_norm", "undetermined"),
    Required("ssm_b_norm", "d_state"),
    Required("ssm_c_norm", "d_state"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "plamo2",
    note: "Layers without KV heads have an SSM. SwiGLU has gate and up projection in one matrix.",
    required: &[SIZES, RMS_NORM, SSM, &[key::FEED_FORWARD_LENGTH, key::SSM_GROUP_COUNT]],
    optional: &[&[key::ATTENTION_HEAD_COUNT], HEADS, UNSCALED_ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", ATTENTION),
        Unless("n_head_kv", MAMBA),
        All(FFN_WITH_POST_NORMS),
    ])],
    ..Architecture::DEFAULT
};
