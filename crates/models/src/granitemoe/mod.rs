//! Architecture `granitemoe`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
