//! Metadata keys and tensors of `jais`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "jais",
    note: "As GPT-2, with ALiBi in place of learned positions and a SwiGLU FFN.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, &[key::ATTENTION_MAX_ALIBI_BIAS]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(&[
        All(GPT2_LAYER),
        Required("ffn_gate.weight", "n_embd, n_ff"),
        Required("ffn_gate.bias", "n_ff"),
    ])],
    ..Architecture::DEFAULT
};
