//! Metadata keys and tensors of `plamo3`.

use crate::plamo2::schema::FFN_WITH_POST_NORMS;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "plamo3",
    note: "SwiGLU has gate and up projection in one matrix.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, SLIDING_WINDOW, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(FUSED_QKV),
        All(QK_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_WITH_POST_NORMS),
    ])],
    ..Architecture::DEFAULT
};
