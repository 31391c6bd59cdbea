//! Architecture `ernie4_5-moe`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
