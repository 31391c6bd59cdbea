//! Metadata keys and tensors of `command-r`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "command-r",
    note: "Attention and FFN are parallel and share one layer norm; models of 64 layers and more \
           have QK-norm.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::LOGIT_SCALE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(PER_HEAD_QK_NORMS),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
