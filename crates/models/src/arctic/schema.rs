//! Metadata keys and tensors of `arctic`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "arctic",
    note: "A dense FFN as wide as the model runs beside the MoE, which reads the layer input \
           through a norm of its own.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, EXPERT_KEYS],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        Required("ffn_gate.weight", "n_embd, n_embd"),
        Required("ffn_up.weight", "n_embd, n_embd"),
        Required("ffn_down.weight", "n_embd, n_embd"),
        Required("ffn_norm_exps.weight", "n_embd"),
        Required("ffn_gate_inp.weight", "n_embd, n_expert"),
        Required("ffn_gate_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_up_exps.weight", "n_embd, n_ff, n_expert"),
        Required("ffn_down_exps.weight", "n_ff, n_embd, n_expert"),
    ])],
    ..Architecture::DEFAULT
};
