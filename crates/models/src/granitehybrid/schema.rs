//! Metadata keys and tensors.

use crate::jamba::schema::ATTENTION;
use crate::schema::architecture::Item::{All, Optional, Required, Unless, When};
use crate::schema::architecture::{Architecture, Item};
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

/// One of the second generation.
pub(crate) const SECOND: &[Item] =
    &[All(SECOND_WITHOUT_NORM), Required("ssm_norm.weight", "d_inner/n_group, n_group")];

pub(crate) const SECOND_WITHOUT_NORM: &[Item] = &[
    Required("ssm_in.weight", "n_embd, 2*d_inner + 2*n_group*d_state + dt_rank"),
    Required("ssm_conv1d.weight", "d_conv, d_inner + 2*n_group*d_state"),
    Optional("ssm_conv1d.bias", "d_inner + 2*n_group*d_state"),
    Required("ssm_dt.bias", "dt_rank"),
    Required("ssm_a", "1, dt_rank"),
    Required("ssm_d", "1, dt_rank"),
    Required("ssm_out.weight", "d_inner, n_embd"),
];

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "granitehybrid",
    note: "Granite 4 and Bamba. Layers without heads of keys and values have a state space. Positions rotate if `rope.scaling.finetuned` is true.",
    required: &[SIZES, TRANSFORMER, RMS, STATE_SPACE, &[key::SSM_GROUP_COUNT]],
    optional: &[
        HEADS,
        ROPE,
        EXPERT_KEYS,
        &[
            key::VOCAB_SIZE,
            key::ATTENTION_SCALE,
            key::EMBEDDING_SCALE,
            key::RESIDUAL_SCALE,
            key::LOGIT_SCALE,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
        ],
    ],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[
        All(ATTN_NORM),
        When("n_head_kv", ATTENTION),
        Unless("n_head_kv", SECOND),
        All(FFN_NORM),
        Unless("n_expert", GATED_FFN),
        When("n_expert", LLAMA_EXPERTS),
    ])],
    ..Architecture::DEFAULT
};
