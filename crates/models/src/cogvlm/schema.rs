//! Metadata keys and tensors of `cogvlm`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "cogvlm",
    note: "Image positions have projections of their own, `vis_...`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
        Required("vis_attn_qkv.weight", "n_embd, n_q + n_k + n_v"),
        Required("vis_attn_output.weight", "n_q, n_embd"),
        Required("vis_gate.weight", "n_embd, n_ff"),
        Required("vis_up.weight", "n_embd, n_ff"),
        Required("vis_down.weight", "n_ff, n_embd"),
    ])],
    ..Architecture::DEFAULT
};
