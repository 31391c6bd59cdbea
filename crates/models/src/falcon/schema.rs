//! Metadata keys and tensors of `falcon`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::{All, Optional};
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "falcon",
    note: "The 40B models have a second norm. `tensor_data_layout` is `jploski`: all query rows, \
           then all key rows, then all value rows.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM, &[key::ATTENTION_HEAD_COUNT_KV]],
    optional: &[HEADS, ROPE, &[key::TENSOR_DATA_LAYOUT, key::ATTENTION_USE_NORM]],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(&[
        All(ATTN_NORM_BIAS),
        Optional("attn_norm_2.weight", "n_embd"),
        Optional("attn_norm_2.bias", "n_embd"),
        All(FUSED_QKV),
        All(ATTN_OUTPUT),
        All(FFN),
    ])],
    ..Architecture::DEFAULT
};
