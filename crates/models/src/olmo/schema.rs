//! Metadata keys and tensors of `olmo`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "olmo",
    note: "Layer norms have no weights.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::ATTENTION_CLAMP_KQV]],
    tensors: &[All(EMBEDDING), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        Required("attn_output.weight", "n_embd, n_embd"),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
