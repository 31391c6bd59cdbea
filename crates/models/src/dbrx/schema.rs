//! Metadata keys and tensors of `dbrx`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "dbrx",
    required: &[SIZES, TRANSFORMER, LAYER_NORM, EXPERT_KEYS, &[key::ATTENTION_CLAMP_KQV]],
    optional: &[HEADS, &[key::ROPE_DIMENSION_COUNT, key::ROPE_FREQ_BASE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        Required("attn_output_norm.weight", "n_embd"),
        Required("ffn_gate_inp.weight", "n_embd, n_expert"),
        Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    ])],
    ..Architecture::DEFAULT
};
