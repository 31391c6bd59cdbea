//! Metadata keys and tensors of `pockettts`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "pockettts",
    note: "Text-to-speech model on continuous audio latents: the embedding ends in vectors that are \
           not tokens, and there is no output matrix.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM_BIAS),
        All(FFN),
    ])],
    ..Architecture::DEFAULT
};
