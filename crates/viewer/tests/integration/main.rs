//! Tests of the viewer over TCP connections.

mod compare;
mod edits;
mod hostile;
mod memory;
mod overview;
mod remote;
mod security;
#[allow(dead_code, reason = "other crates share the module and use more of it")]
#[path = "../../../remote/tests/integration/server.rs"]
mod server;
mod state;
mod tensors;
mod tokens;
mod truncated;
mod viewer;
