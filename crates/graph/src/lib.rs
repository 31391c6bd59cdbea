//! Computation graphs of models, as data.
//!
//! A [`RawGraph`] lists the operations ([`Op`]) of a model in the order of execution, the tensors that they read
//! and the states that persist between runs. Every hyper-parameter is a number in the graph, so that a runtime
//! needs no knowledge of architectures. A [`Graph`] is a checked one: every operation fits its inputs, weights and
//! states. The `gguf-models` crate builds graphs from the metadata of models; [`stored`] writes them to a file and reads them back;
//! `docs/graph.md` specifies the stored form.
//!
//! Modules depend on each other in one direction: `id`, `tensor`, `scope` and `cost`, `op`, `raw`, `graph`,
//! `stored` and `dot`.

mod cost;
mod dot;
mod field;
mod graph;
mod id;
pub mod op;
mod raw;
mod scope;
pub mod stored;
mod tensor;

pub use cost::{Cost, CostScope, Work, Workload};
pub use graph::{Graph, Limits};
pub use id::{StateId, ValueId, WeightId};
pub use op::*;
pub use raw::{Output, OutputKind, Program, RawGraph};
pub use scope::Scope;
pub use tensor::{RowDim, Shape, State, Weight};
