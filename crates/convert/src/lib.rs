//! Foreign models to GGUF, in one streaming pass.

mod error;
mod json;

pub use error::Error;
