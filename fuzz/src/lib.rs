//! Fuzz properties for arbitrary bytes: one function per fuzz target.

pub mod blocks;
pub mod checkpoint;
pub mod container;
pub mod graph;
pub mod http;
pub mod journal;
pub mod legacy;
pub mod template;
pub mod vocabulary;
