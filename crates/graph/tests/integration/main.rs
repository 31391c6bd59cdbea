//! Integration tests of graphs.

mod document;
mod invalid;
