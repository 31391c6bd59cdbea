//! Splits a model into shards, and merges them.
//!
//! The shards are named `PREFIX-00001-of-00003.gguf` and so on. Three keys in each give the shard
//! number, the number of shards and the number of tensors; the first shard has all other keys too.
//! Keys, names and distribution follow llama.cpp (`tools/gguf-split` and `llama-model-loader.cpp`).

mod merge;
mod split;
mod write;

pub use merge::{MergeOptions, delete_merged, merge};
pub use split::{PlannedShard, SplitLimit, SplitOptions, SplitPlan};
