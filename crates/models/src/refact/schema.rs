//! Metadata keys and tensors of `refact`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::layers;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "refact",
    note: "ALiBi with a maximum bias of 8, without a key.",
    required: &[SIZES, TRANSFORMER, RMS_NORM],
    optional: &[HEADS],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM), All(TIED_OUTPUT)],
    blocks: &[layers(SWIGLU_LAYER)],
    ..Architecture::DEFAULT
};
