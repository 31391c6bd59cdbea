//! Streaming pipeline: reads, transforms, encodes and writes tensors in one pass.
//!
//! A [`Job`] describes an output: metadata and [`Item`]s. An item is a [`Tensor`] with its type in
//! the output. The tensor holds the source of its bytes and the [`Step`]s that transform its
//! elements. [`Job::write`] writes one output. [`write_all`] writes several outputs from the same
//! sources and can resume after an interruption.
//!
//! The size of every output tensor follows from its shape and type, so the headers are written
//! first. Worker threads then process chunks of rows in file order: each chunk is read once,
//! decoded, encoded for every output and written at its final offset. Memory use is a few buffers
//! per thread, whatever the size of the model, and the bytes do not depend on the number of
//! threads.
//! ```
//! use gguf::{ByteOrder, Metadata, Shape, TensorType};
//! use gguf_pipeline::{Content, Item, Job, Step, Tensor};
//! use gguf_store::{Existing, Model, Overwrite};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = &directory.path().join("model.gguf");
//! let tensor = Tensor {
//!     name: "output.weight".into(),
//!     shape: Shape::new(&[2, 32]).expect("two dimensions"),
//!     stored_type: TensorType::F32,
//!     content: Content::Values((0..64).map(|i| i as f32).collect()),
//! };
//! let item = Item::new(tensor.changed(Step::Transpose)?, TensorType::Q8_0);
//! let mut metadata = Metadata::new();
//! metadata.set("general.architecture", "llama");
//! let job = Job { metadata, items: vec![item], check_finite: true, order: ByteOrder::Little };
//! job.write(path, &Overwrite::new(Existing::Refuse), &())?;
//!
//! let model = Model::open(path)?;
//! let written = &model.tensors()[0].info;
//! assert_eq!((&written.shape[..], written.tensor_type), (&[32, 2][..], TensorType::Q8_0));
//! # Ok(())
//! # }
//! ```

mod chunk;
pub mod codec;
mod fingerprint;
mod job;
mod journal;
mod mismatch;
pub mod parallel;
mod shards;
mod task;
mod tensor;
mod write;

pub use job::{Item, Job};
pub use mismatch::TensorMismatch;
pub use shards::shard_paths;
pub use tensor::{Content, Function, Interleaved, RowSlice, Step, Stored, Tensor};
pub use write::{Interruption, write_all};
