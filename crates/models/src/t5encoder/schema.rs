//! Metadata keys and tensors of `t5encoder`.

use crate::schema::architecture::Item::{All, Required};
use crate::schema::architecture::{Architecture, Block};
use crate::schema::groups::*;
use crate::schema::key;
use crate::t5::schema::LAYER;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "t5encoder",
    note: "The encoder of t5 alone, for embeddings.",
    required: &[SIZES, TRANSFORMER, RMS_NORM, &[key::ATTENTION_RELATIVE_BUCKETS_COUNT]],
    optional: &[HEADS, &[key::ATTENTION_LAYER_NORM_EPSILON]],
    tensors: &[All(EMBEDDING), Required("enc.output_norm.weight", "n_embd"), All(TIED_OUTPUT)],
    blocks: &[Block { prefix: "enc.blk.", from: "0", to: "n_layer", items: LAYER }],
    ..Architecture::DEFAULT
};
