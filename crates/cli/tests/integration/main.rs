//! Integration tests of the `gguf` binary, as one test binary: `cargo test -p gguf-cli --test integration compat` runs
//! the tests of one module.

mod cli;
mod compat;
#[cfg(unix)]
mod documentation;
mod messages;
mod outputs;
mod sources;
mod transcripts;

/// EAGLE 3 models with random weights.
#[path = "../../../kit/tests/integration/draft_models.rs"]
mod draft_models;
/// Builds legacy GGML files.
#[allow(dead_code, reason = "other crates share the module and use more of it")]
#[path = "../../../legacy/tests/integration/builder.rs"]
mod legacy_files;
/// HTTP server on the loopback interface.
#[allow(dead_code, reason = "other crates share the module and use more of it")]
#[path = "../../../remote/tests/integration/server.rs"]
mod server;
mod upload_hub;
mod whisper;
