//! Errors for JavaScript.

use gguf::Error;
use wasm_bindgen::JsValue;

/// Error that is thrown in JavaScript.
pub struct Thrown(Error);

impl<E: Into<Error>> From<E> for Thrown {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Serializes the error as JSON.
impl From<Thrown> for JsValue {
    fn from(Thrown(error): Thrown) -> Self {
        Self::from_str(&gguf_check::json::error(&error).to_string())
    }
}
