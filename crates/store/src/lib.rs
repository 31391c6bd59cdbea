//! GGUF models on disk: memory maps, atomic writes, in-place edits, split and merge.
//!
//! A [`Model`] opens all files of a model and provides its tensors without a copy. An
//! [`AtomicFile`] appears under its name only when it is complete. [`edit`] changes headers in
//! place with file locking and a journal. A [`SplitPlan`] splits a model into shards; [`merge`]
//! joins them; [`endian`] converts the byte order. Tensor data come from a [`Source`], a local or remote file. The crate [`gguf`]
//! parses and checks headers.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use gguf::{Header, RawHeader, write_header};
//! use gguf_store::{AtomicFile, Existing, Model, Overwrite};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = &directory.path().join("model.gguf");
//! let mut header = RawHeader::default();
//! header.metadata.set("general.architecture", "llama");
//! let output = AtomicFile::create(path, &Overwrite::new(Existing::Refuse))?;
//! output.write_at(&write_header(&Header::new(header)?)?, 0)?;
//! output.commit()?;
//!
//! let model = Model::open(path)?;
//! assert_eq!(model.metadata().str("general.architecture"), Some("llama"));
//! # Ok(())
//! # }
//! ```

mod advice;
pub mod byte_parts;
pub mod digest;
pub mod edit;
pub mod endian;
mod fetch;
mod file_id;
mod little_endian;
mod map;
mod model;
mod output;
mod paths;
mod position;
mod progress;
mod read_file;
pub mod scratch;
mod shard;
mod shard_set;
mod source;
mod text;

pub use advice::Advice;
pub use fetch::fetch_header;
pub use file_id::is_same_file;
pub use map::map_part;
pub use model::{Model, ModelFile, ModelTensor};
pub use output::{
    AtomicFile, ClosedOutput, Existing, Output, OutputLayout, Overwrite, RemoteOutput, RemoteStore,
    ResumeOptions, is_unfinished, rename_new, require_space, unfinished_name,
};
pub use progress::Progress;
pub use read_file::{FileState, ReadFile};
pub use shard::{
    MergeOptions, PlannedShard, SplitLimit, SplitOptions, SplitPlan, delete_merged, merge,
};
pub use shard_set::ShardSet;
pub use source::{LocalFile, Source};
pub use text::read_text;
