//! Integration tests of the schema and of the graphs.

#[cfg(feature = "graph")]
mod graphs;
mod schema;
#[cfg(feature = "graph")]
mod tiny;
