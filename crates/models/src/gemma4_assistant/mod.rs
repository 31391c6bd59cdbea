//! Architecture `gemma4-assistant`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
