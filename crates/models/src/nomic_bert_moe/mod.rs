//! Architecture `nomic-bert-moe`.

#[cfg(feature = "graph")]
pub(crate) mod graph;
pub(crate) mod schema;
