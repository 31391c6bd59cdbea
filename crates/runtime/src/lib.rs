//! Runs models on the CPU.
//!
//! An [`Executor`] has a computation graph and the weights it names, which stay where they are
//! mapped. A [`Context`] has what is kept between runs: caches and states of some sequences. A
//! [`Batch`] of tokens goes in, and rows of numbers come out: logits, hidden states, classes.
//!
//! Results do not depend on the number of threads, which are those of the current rayon pool, nor
//! on how tokens are cut into batches.

mod batch;
mod cache;
mod context;
mod executor;
mod exp;
mod lora;
pub mod machine;
mod ops;
mod product;
mod run;
mod sample;
mod state;
mod value;
mod weight;

pub use batch::{Batch, Token};
pub use cache::CacheType;
pub use context::{Context, ContextOptions};
pub use executor::Executor;
pub use lora::Adapter;
pub use product::Arithmetic;
pub use sample::{Sampler, Sampling};
pub use value::Value;
