//! Architecture `ernie4_5`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
