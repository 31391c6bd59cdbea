//! Errors about vocabularies.

use gguf::{Error, Finding};

/// A key of the tokenizer is missing or inconsistent.
pub(crate) fn invalid(key: &str, fault: impl Into<Box<str>>) -> Error {
    invalid_with_help(key, fault, "convert the model again from a folder with its tokenizer")
}

/// Like [`invalid`], with other advice.
pub(crate) fn invalid_with_help(
    key: &str,
    fault: impl Into<Box<str>>,
    help: &'static str,
) -> Error {
    Finding::error("tokenizer-invalid", fault).key(key).help(help).into()
}

/// A value of the key that is not supported.
pub(crate) fn unknown(key: &str, name: &str, help: &'static str) -> Error {
    let fault = format!("is {name:?}, which is not supported");
    Finding::error("tokenizer-unknown", fault).key(key).help(help).into()
}

/// A `tokenizer.json` fails on a text or on ids.
#[cfg(feature = "huggingface")]
pub(crate) fn fails(cause: &dyn std::fmt::Display) -> Error {
    let fault = format!("the Hugging Face tokenizer fails: {cause}");
    Finding::error("tokenizer-fails", fault).into()
}
