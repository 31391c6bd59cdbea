//! Architecture `hy_v3`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
pub(crate) mod schema;
