//! Metadata keys and tensors of `bloom`.

use crate::schema::architecture::Architecture;
use crate::schema::architecture::Item::All;
use crate::schema::groups::*;
use crate::schema::key_schema::DefaultValue;
use crate::schema::{key, layers};

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "bloom",
    note: "ALiBi has a maximum bias of 8 and no key for it.",
    required: &[SIZES, TRANSFORMER, LAYER_NORM],
    optional: &[HEADS],
    defaults: &[(key::ATTENTION_MAX_ALIBI_BIAS, DefaultValue::Number(8.0))],
    tensors: &[All(EMBEDDING), All(EMBEDDING_NORM), All(OUTPUT_NORM_BIAS), All(TIED_OUTPUT)],
    blocks: &[layers(GPT2_LAYER)],
    ..Architecture::DEFAULT
};
