//! Metadata keys and tensors.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "command-r",
    note: "Attention and feed-forward share one norm; models of 64 layers and more have norms of \
           queries and keys.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE, key::LOGIT_SCALE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(EACH_HEAD_NORMS),
        All(GATED_FFN),
    ])],
    ..Architecture::DEFAULT
};
