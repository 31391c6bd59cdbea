//! Metadata keys and tensors of `hunyuan-moe`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hunyuan-moe",
    note: "MoE with a shared expert of the full FFN size.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_SHARED_FEED_FORWARD_LENGTH,
            key::EXPERT_SHARED_COUNT,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(QK_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(EXPERTS),
        Required("ffn_gate_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_up_shexp.weight", "n_embd, n_ff_shared"),
        Required("ffn_down_shexp.weight", "n_ff_shared, n_embd"),
    ])],
    ..Architecture::DEFAULT
};
