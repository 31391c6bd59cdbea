//! Architecture `granitemoe`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod granite_hybrid;
pub(crate) mod schema;
