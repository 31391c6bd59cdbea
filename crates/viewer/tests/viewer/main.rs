//! The viewer over real connections of this machine.

mod compare;
mod edit;
mod facts;
mod far;
mod hostile;
#[allow(dead_code)] // Other tests want more of it.
#[path = "../../../remote/tests/loopback/server.rs"]
mod server;
mod site;
mod state;
mod strangers;
mod tensors;
mod tokens;
