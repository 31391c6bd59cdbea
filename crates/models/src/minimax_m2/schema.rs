//! Metadata keys and tensors of `minimax-m2`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "minimax-m2",
    note: "QK-norm over all heads together.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE, DEEPSEEK_MOE_KEYS],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_q_norm.weight", "n_q"),
        Required("attn_k_norm.weight", "n_k"),
        All(FFN_NORM),
        All(EXPERTS),
        Required("exp_probs_b.bias", "n_expert"),
    ])],
    ..Architecture::DEFAULT
};
