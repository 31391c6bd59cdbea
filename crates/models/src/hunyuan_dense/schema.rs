//! Metadata keys and tensors of `hunyuan-dense`.

use crate::maincoder::schema::NORMED_HEADS;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hunyuan-dense",
    required: &[SIZES, TRANSFORMER, RMS],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(NORMED_HEADS)],
    ..Architecture::DEFAULT
};
