//! Metadata keys and tensors of `gpt-oss`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gpt-oss",
    note: "Every second layer, beginning with the first, uses sliding-window attention.",
    required: &[
        SIZES,
        TRANSFORMER,
        RMS_NORM,
        EXPERT_KEYS,
        &[key::ATTENTION_SLIDING_WINDOW, key::EXPERT_FEED_FORWARD_LENGTH],
    ],
    optional: &[HEADS, ROPE, SLIDING_WINDOW],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT_BIAS),
        Required("attn_sinks.weight", "n_head"),
        Required("post_attention_norm.weight", "n_embd"),
        All(EXPERTS),
        Required("ffn_gate_inp.bias", "n_expert"),
        Required("ffn_gate_exps.bias", "n_ff_exp, n_expert"),
        Required("ffn_up_exps.bias", "n_ff_exp, n_expert"),
        Required("ffn_down_exps.bias", "n_embd, n_expert"),
    ])],
    ..Architecture::DEFAULT
};
