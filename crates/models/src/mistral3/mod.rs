//! Architecture `mistral3`.

#[cfg(feature = "convert")]
pub(crate) mod consolidated;
#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
