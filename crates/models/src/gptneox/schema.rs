//! Metadata keys and tensors of `gptneox`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "gptneox",
    note: "llama.cpp's converter does not write `rope.freq_base`.",
    required: &[
        SIZES,
        TRANSFORMER,
        LAYER_NORM,
        &[key::USE_PARALLEL_RESIDUAL, key::ROPE_DIMENSION_COUNT],
    ],
    optional: &[ROPE],
    tensors: &[All(EMBEDDING), All(OUTPUT_NORM_BIAS), All(OUTPUT)],
    blocks: &[layers(GPT2_LAYER)],
    ..Architecture::DEFAULT
};
