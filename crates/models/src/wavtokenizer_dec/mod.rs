//! Architecture `wavtokenizer-dec`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
