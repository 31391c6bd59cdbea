//! Metadata keys and tensors of `grovemoe`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "grovemoe",
    note: "Experts of a group share a smaller expert, `ffn_*_chexps`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[
        HEADS,
        ROPE,
        &[
            key::EXPERT_FEED_FORWARD_LENGTH,
            key::EXPERT_CHUNK_FEED_FORWARD_LENGTH,
            key::EXPERTS_PER_GROUP,
            key::EXPERT_GROUP_SCALE,
        ],
    ],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(QK_NORMS),
        All(FFN_NORM),
        All(EXPERTS),
        Required("ffn_gate_chexps.weight", "n_embd, n_ff_chunk, n_expert/n_grove"),
        Required("ffn_up_chexps.weight", "n_embd, n_ff_chunk, n_expert/n_grove"),
        Required("ffn_down_chexps.weight", "n_ff_chunk, n_embd, n_expert/n_grove"),
    ])],
    ..Architecture::DEFAULT
};
