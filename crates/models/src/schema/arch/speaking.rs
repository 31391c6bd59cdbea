//! Text models that answer in sound, which a file of the architecture `clip` makes.

use super::layers;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;

pub(super) static QWEN3_TTS: Architecture = Architecture {
    name: "qwen3tts",
    note: "As qwen3vl. Behind the tokens of texts stand codes of sound; what is drawn is one of these, of which programs take \
           3072 to be.",
    required: &[SIZES, TRANSFORMER, RMS, &["rope.dimension_sections"]],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), Required("output.weight", "n_embd, 3072")],
    blocks: &[layers(&[
        All(ATTN_NORM),
        All(QKV),
        All(HEAD_NORMS),
        All(ATTN_OUTPUT),
        All(FFN_NORM),
        All(GATED_FFN),
    ])],
    open: false,
};

pub(super) static POCKET_TTS: Architecture = Architecture {
    name: "pockettts",
    note: "Goes on with vectors of sound: the embedding ends in vectors that stand for no text, and there is no output matrix.",
    required: &[SIZES, TRANSFORMER, NORM],
    optional: &[HEADS, ROPE],
    defaults: &[],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        All(QKV),
        All(ATTN_OUTPUT),
        All(FFN_NORM_BIAS),
        All(FFN),
    ])],
    open: false,
};
