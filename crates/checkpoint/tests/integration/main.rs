//! Integration tests of the crate.

mod fuzz_seeds;
mod open_memory;
