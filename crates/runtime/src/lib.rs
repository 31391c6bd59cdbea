//! Inference on the CPU.
//!
//! An [`Executor`] is a computation graph with its weights, which stay memory-mapped. A [`Context`] holds the KV caches
//! and recurrent states of some sequences. It runs a [`Batch`] of tokens and returns logits, hidden states or other
//! outputs.
//!
//! Results depend neither on the number of threads, which are those of the current rayon pool, nor on how tokens are
//! split into batches.
//!
//! Modules depend on each other in one direction: `system_memory`, `memory_budget`, `value`, `watch`, `instructions`,
//! `repack`, `matrix`, `matmul`, `weights`, `lora`, `executor`, `sequence`, `run`, `op`, `interpreter`, `context`, `saved_state`, `speculation`.
//!
//! ```no_run
//! use std::sync::Arc;
//! use gguf_graph::OutputKind;
//! use gguf_runtime::{Batch, Context, ContextOptions, Executor, Precision};
//!
//! let model = gguf_store::Model::open("model.gguf".as_ref())?;
//! let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model))?;
//! let executor = Arc::new(Executor::new(&model, graph, Precision::Exact)?);
//! let mut context = Context::new(executor, ContextOptions::default())?;
//! // The logits after these three tokens, which stay in the context.
//! let logits = context.run(&Batch::last_output(&[1, 15043, 3186], 0), OutputKind::Logits, &())?;
//! assert_eq!(logits.rows, 1);
//! # Ok::<(), gguf::Error>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
pub mod benchmark;
mod cache_type;
mod columns;
mod context;
mod executor;
mod exp;
pub mod graph_cost;
mod instructions;
mod interpreter;
pub mod kernel_speed;
mod kv_cache;
mod liveness;
mod lora;
pub mod machine;
mod matmul;
mod matrix;
mod memory;
mod memory_budget;
pub mod memory_estimate;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod npy;
mod observer;
mod op;
mod options;
mod portable;
mod prefetch;
#[cfg(test)]
mod random;
mod read_ahead;
mod repack;
mod rotation;
mod run;
mod sampler;
mod saved_state;
mod scratch;
mod sequence;
#[cfg(target_arch = "x86_64")]
mod simd;
mod softmax;
pub mod speculation;
mod system_memory;
mod value;
mod watch;
mod weights;

#[cfg(target_arch = "x86_64")]
pub use avx512::V4Vnni;
pub use batch::{Batch, Token};
pub use cache_type::CacheType;
pub use context::Context;
pub use executor::Executor;
pub use instructions::InstructionSet;
pub use interpreter::LiveValues;
pub use matmul::Precision;
pub use memory::ContextMemory;
pub use memory_budget::MemoryBudget;
pub use observer::Observer;
pub use options::ContextOptions;
pub use sampler::{Sampler, SamplingOptions};
pub use saved_state::StateArray;
pub use sequence::Checkpoint;
pub use softmax::log_sum_exp;
pub use value::Value;
