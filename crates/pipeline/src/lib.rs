//! Source to transform to quantizer to writer, in one streaming pass.
//!
//! The size of every output tensor follows from its shape and type, so the headers are written
//! first. Worker threads then take chunks of rows in file order; each chunk is read once, decoded,
//! encoded for every output and written at its final offset. Memory is a few buffers per thread,
//! whatever the size of the model, and the bytes do not depend on the number of threads.

mod chunk;
mod fingerprint;
mod interleaved;
mod job;
mod journal;
mod misfit;
pub mod parallel;
mod shards;
mod step;
mod task;
mod tensor;
mod write;

pub use interleaved::{Interleaved, RowSlice};
pub use job::{Item, Job};
pub use misfit::Misfit;
pub use shards::shard_paths;
pub use step::{Function, Step};
pub use tensor::{Content, Stored, Tensor};
pub use write::{Interruption, write_all};
