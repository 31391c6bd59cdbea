//! Integration tests of gguf-kit.

mod calibration;
mod convert;
mod drafts;
mod eagle3;
mod eval;
mod memory;
mod tokenizers;
mod values;
