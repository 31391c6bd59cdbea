//! Foreign models to GGUF, in one streaming pass.
//!
//! A [`source`] yields tensors lazily; a family says what each becomes; the [`pipeline`] reads,
//! transforms, quantizes and writes them by rows on all cores.

pub mod bare;
pub mod export;
mod family;
pub mod general;
pub mod hf;
pub mod lora;
pub mod provenance;
pub mod vocab;

pub use family::classes;
/// Patterns of tensor names, in which `{}` stands for a number.
pub mod names {
    pub use crate::family::names::{captures, filled};
}
