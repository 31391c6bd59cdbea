//! Models held against each other or against what they should be: work on all tensor data.
//!
//! [`hash`](hash()) computes digests of tensor data with the lines of llama.cpp's
//! `llama-gguf-hash`, and a [`Manifest`] checks them; [`Diff`] says in figures and in words how
//! two models differ; [`scan`](scan()) looks for damaged data.

mod diff;
mod hash;
mod manifest;
mod scan;

pub use diff::{Change, Detail, Diff, ElementChange, KeyChange, TensorChange, Verdict, diff};
pub use hash::{Algorithm, Entry, HashOptions, UnknownAlgorithm, hash};
pub use manifest::{Manifest, Match, Outcome, Tally};
pub use scan::scan;
