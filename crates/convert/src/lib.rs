//! Foreign models to GGUF, in one streaming pass.

mod error;
pub mod general;
mod json;

pub use error::Error;
