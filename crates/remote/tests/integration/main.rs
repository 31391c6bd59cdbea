//! Integration tests of the crate, against a server on loopback.

mod fuzz_seeds;
mod http;
mod hub;
mod hub_cache;
mod hub_upload;
mod mock_hub;
mod ollama;
mod repair;
mod repository;
mod server;
