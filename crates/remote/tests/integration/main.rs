//! Integration tests of the crate, against a server on loopback.

mod fuzz_seeds;
mod http;
mod hub;
mod hub_cache;
mod repository;
mod server;
