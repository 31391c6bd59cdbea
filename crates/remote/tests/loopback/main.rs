//! Far files, served by this machine to itself.

mod http;
mod hub;
mod repository;
mod server;
