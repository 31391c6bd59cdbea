//! Where foreign tensors come from.
//!
//! A [`Checkpoint`] is a directory of weights, or one file: safetensors or PyTorch, plain or
//! quantized by another program. Opening it reads no weights. What is stored in a way that a GGUF
//! tensor cannot have is a [`gguf_store::Source`] that computes plain elements, or blocks of a type that
//! holds the same values, when they are asked for.

mod cast;
mod checkpoint;
pub mod config;
mod dtype;
mod floats;
pub mod json;
mod layout;
mod named;
mod pytorch;
mod quantized;
mod raw;
mod rows;
mod safetensors;
mod strided;
mod weight_file;

pub use checkpoint::{Checkpoint, Entry, Opener};
pub use weight_file::WeightFile;
