//! What can be wrong with a vocabulary.

use gguf::{Error, Finding};

/// A key of the tokenizer is missing, or its value contradicts the rest.
pub(crate) fn invalid(key: &str, fault: impl Into<Box<str>>) -> Error {
    wrong(key, fault, "convert the model anew from a folder with its tokenizer")
}

/// The same, where another conversion is not what helps.
pub(crate) fn wrong(key: &str, fault: impl Into<Box<str>>, help: &'static str) -> Error {
    Finding::error("tokenizer-invalid", fault).key(key).help(help).into()
}

/// A name that no tokenizer here goes by.
pub(crate) fn unknown(key: &str, name: &str, help: &'static str) -> Error {
    let fault = format!("is {name:?}, which is not known here");
    Finding::error("tokenizer-unknown", fault).key(key).help(help).into()
}

/// A tokenizer of Hugging Face fails on a text or on ids.
#[cfg(feature = "huggingface")]
pub(crate) fn fails(cause: &dyn std::fmt::Display) -> Error {
    let fault = format!("the tokenizer of Hugging Face fails: {cause}");
    Finding::error("tokenizer-fails", fault).into()
}
