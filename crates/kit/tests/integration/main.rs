//! Integration tests of gguf-kit.

mod calibration;
mod convert;
mod eval;
mod memory;
mod tokenizers;
mod values;
