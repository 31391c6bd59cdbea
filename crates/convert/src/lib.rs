//! Foreign models to GGUF, in one streaming pass.

mod error;
mod json;
pub mod vocab;

pub use error::Error;
