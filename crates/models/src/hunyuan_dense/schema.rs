//! Metadata keys and tensors of `hunyuan-dense`.

use crate::maincoder::schema::QK_NORM_LAYER;
use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "hunyuan-dense",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS, ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(QK_NORM_LAYER)],
    ..Architecture::DEFAULT
};
