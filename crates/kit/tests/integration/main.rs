//! Integration tests of gguf-kit.

mod calibration;
mod convert;
mod draft_models;
mod drafts;
mod eval;
mod memory;
mod tokenizers;
mod values;
