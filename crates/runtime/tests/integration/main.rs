//! Integration tests of the runtime.

mod adapters;
mod append_features;
mod architectures;
mod available_memory;
mod batches;
mod block_compress;
mod block_selection;
mod drafts;
mod history;
mod linear_attention;
mod matmul_id;
mod memory_budget;
mod reference;
mod saved_states;
#[path = "../../../models/tests/integration/tiny/mod.rs"]
mod schema_models;
#[allow(dead_code, reason = "other crates share the module and use more of it")]
#[path = "../../../../fuzz/src/graph.rs"]
mod tiny;
mod windows;
