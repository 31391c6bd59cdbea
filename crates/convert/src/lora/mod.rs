//! Conversion, merging and extraction of LoRA adapters; `gguf-lora` describes their form in GGUF.

pub mod extract;
pub mod merge;
pub mod peft;

pub use gguf_lora::{Adapter, Pair, PairDims};
