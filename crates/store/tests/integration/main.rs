//! Integration tests of the crate.

mod edit;
mod fetch_header;
mod fuzz_seeds;
mod open_memory;
mod shards;
