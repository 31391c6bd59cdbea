//! Runs models on the CPU.
//!
//! An [`Executor`] has a computation graph and the weights it names, which stay where they are
//! mapped. A [`Context`] has what is kept between runs: caches and states of some sequences. A
//! [`Batch`] of tokens goes in, and rows of numbers come out: logits, hidden states, classes.
//!
//! Results do not depend on the number of threads, which are those of the current rayon pool, nor
//! on how tokens are cut into batches.
//!
//! ```no_run
//! use std::sync::Arc;
//! use gguf_graph::OutputKind;
//! use gguf_runtime::{Arithmetic, Batch, Context, ContextOptions, Executor};
//!
//! let model = gguf_store::Model::open("model.gguf".as_ref())?;
//! let graph = gguf_models::build_graph(model.metadata(), Executor::tensors(&model))?;
//! let executor = Arc::new(Executor::new(&model, graph, Arithmetic::Exact)?);
//! let mut context = Context::new(executor, ContextOptions::default())?;
//! // The scores of the token after these three; the context keeps them for what follows.
//! let logits = context.run(&Batch::of_last(&[1, 15043, 3186], 0), OutputKind::Logits, &())?;
//! assert_eq!(logits.rows, 1);
//! # Ok::<(), gguf::Error>(())
//! ```

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod batch;
pub mod benchmark;
mod cache;
mod columns;
mod context;
mod executor;
mod exp;
pub mod graph_cost;
mod instructions;
mod lora;
pub mod machine;
mod memory;
pub mod memory_estimate;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod npy;
mod observer;
mod ops;
mod prefetch;
mod product;
mod repacking;
mod run;
mod sample;
mod scratch;
#[cfg(target_arch = "x86_64")]
mod simd;
mod softmax;
mod state;
mod value;
mod watch;
mod weight;

pub use batch::{Batch, Token};
pub use cache::CacheType;
pub use context::{Context, ContextOptions};
pub use executor::Executor;
pub use instructions::Instructions;
pub use lora::Adapter;
pub use memory::Memory;
pub use observer::Observer;
pub use product::Arithmetic;
pub use run::Between;
pub use sample::{Sampler, Sampling};
pub use softmax::log_sum_exp;
pub use value::Value;
