//! Models in several files.
//!
//! The files of a set are named `PREFIX-00001-of-00003.gguf` and so on. Each says in three keys
//! which part of what it is; the first one has all other keys too. The keys, the names and what
//! goes where are those of llama.cpp's tool (`tools/gguf-split` and `llama-model-loader.cpp` of
//! llama.cpp).

mod merge;
mod set;
mod split;
mod write;

pub use merge::{MergeOptions, delete_merged, merge};
pub use set::ShardSet;
pub use split::{PlannedShard, SplitLimit, SplitOptions, SplitPlan};
