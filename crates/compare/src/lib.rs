//! Models held against each other or against what they should be.
//!
//! [`hash`](hash()) computes digests of tensor data with the lines of the official
//! `llama-gguf-hash`, and a [`Manifest`] checks them; [`Diff`] says in figures and in words how
//! two models differ.

mod diff;
mod hash;
mod manifest;

pub use diff::{Change, Detail, Diff, ElementChange, KeyChange, TensorChange, Verdict, diff};
pub use hash::{Algorithm, Entry, HashOptions, UnknownAlgorithm, hash};
pub use manifest::{Manifest, Match, Outcome, Tally};
