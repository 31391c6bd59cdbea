//! Metadata keys and tensors of `plm`.

use crate::minicpm3::schema::{MLA_KEYS, MLA_KV};
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "plm",
    note: "MLA; FFN with squared ReLU, without gate.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, MLA_KEYS, &[key::ATTENTION_VALUE_LENGTH]],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        Required("attn_q.weight", "n_embd, n_head*head_k"),
        All(MLA_KV),
        All(FFN),
    ])],
    ..Architecture::DEFAULT
};
