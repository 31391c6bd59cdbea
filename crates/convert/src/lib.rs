//! Foreign models to GGUF, in one streaming pass.

mod error;
pub mod general;
mod json;
pub mod vocab;

pub use error::Error;
