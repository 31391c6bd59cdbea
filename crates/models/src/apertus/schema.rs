//! Metadata keys and tensors of `apertus`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "apertus",
    note: "The activation xIELU has parameters per layer: the keys `xielu.*`.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE, &[key::VOCAB_SIZE]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(OUTPUT), All(ROPE_FACTORS)],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(ATTN_OUTPUT),
        All(QK_NORMS),
        All(FFN_NORM),
        All(FFN),
    ])],
    ..Architecture::DEFAULT
};
