//! Metadata keys and tensors of `mistral4`.

use crate::deepseek2;
use crate::schema::architecture::Architecture;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mistral4",
    note: "As deepseek2, with attention that sharpens on long texts.",
    ..deepseek2::schema::SCHEMA
};
