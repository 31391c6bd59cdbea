//! Architecture `internlm2`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
