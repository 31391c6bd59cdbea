//! Metadata keys and tensors of `arcee`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "arcee",
    note: "The FFN has no gate; its activation is the squared ReLU.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::POOLING_TYPE]],
    tensors: LLAMA_TENSORS,
    blocks: &[layers(&[All(ATTN_NORM), All(QKV), All(ATTN_OUTPUT), All(FFN_NORM), All(FFN)])],
    ..Architecture::DEFAULT
};
