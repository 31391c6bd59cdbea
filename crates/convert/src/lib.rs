//! Foreign models to GGUF, in one streaming pass.
//!
//! A [`source`] yields tensors lazily; a family says what each becomes; the [`pipeline`] reads,
//! transforms, quantizes and writes them by rows on all cores.

pub mod bare;
pub mod budget;
mod config;
mod error;
pub mod estimate;
pub mod export;
mod family;
mod file_type;
pub mod fused;
pub mod general;
pub mod hf;
pub mod importance;
mod json;
pub mod legacy;
pub mod lora;
mod parallel;
pub mod pipeline;
pub mod provenance;
mod prune;
pub mod quantize;
pub mod source;
pub mod step;
pub mod tensor;
pub mod verify;
pub mod vocab;

pub use error::Error;
pub use family::classes;
