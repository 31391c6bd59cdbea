//! Integration tests of the crate.

mod advice;
mod edit;
mod fetch_header;
mod fuzz_seeds;
mod open_memory;
mod shards;
