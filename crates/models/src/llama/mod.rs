//! Architecture `llama`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod eagle3;
#[cfg(feature = "graph")]
pub(crate) mod graph;
#[cfg(feature = "convert")]
pub(crate) mod internlm2;
pub(crate) mod schema;
