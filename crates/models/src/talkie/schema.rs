//! Metadata keys and tensors of `talkie`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Required};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "talkie",
    note: "Norms have no weights. Each query head has a gain, and each layer adds the embedding again.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::LOGIT_SCALE]],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT)],
    blocks: &[layers(&[
        All(QKV),
        All(ATTN_OUTPUT),
        Required("attn_output.scale", "1"),
        Required("attn_q_norm.weight", "1, n_head"),
        All(GATED_FFN),
        Required("ffn_down.scale", "1"),
        Required("layer_output_scale.weight", "1"),
    ])],
    ..Architecture::DEFAULT
};
