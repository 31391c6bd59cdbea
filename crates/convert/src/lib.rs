//! Foreign models to GGUF, in one streaming pass.
//!
//! A [`source`] yields tensors lazily; a family says what each becomes; the [`pipeline`] reads,
//! transforms, quantizes and writes them by rows on all cores.

pub mod budget;
mod config;
mod error;
pub mod estimate;
mod family;
mod file_type;
pub mod general;
pub mod hf;
pub mod importance;
mod json;
pub mod legacy;
pub mod pipeline;
mod prune;
pub mod quantize;
pub mod source;
pub mod step;
pub mod tensor;
pub mod vocab;

pub use error::Error;
pub use family::classes;
