//! Metadata keys and tensors of `mistral4`.

use crate::deepseek2;
use crate::schema::architecture::Architecture;

pub(crate) static SCHEMA: Architecture = Architecture {
    name: "mistral4",
    note: "As deepseek2, with an attention temperature and fused gate and up projections of \
           experts.",
    ..deepseek2::schema::SCHEMA
};
