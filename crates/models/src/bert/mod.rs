//! Architecture `bert`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod distilbert;
#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
