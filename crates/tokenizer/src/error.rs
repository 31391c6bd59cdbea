//! What can be wrong with a vocabulary.

/// Why a model's metadata do not give a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key is missing or its value contradicts the rest.
    #[error("{key}: {fault}; {help}")]
    Vocabulary {
        /// The metadata key.
        key: String,
        /// What is wrong with its value.
        fault: String,
        /// What to do.
        help: &'static str,
    },
    /// A name that no tokenizer here goes by.
    #[error("{key} is {value:?}, which is not known here; {help}")]
    Unknown {
        /// The metadata key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        help: &'static str,
    },
    /// A tokenizer of Hugging Face fails on a text or on ids.
    #[error("the tokenizer of Hugging Face fails: {0}")]
    Encode(String),
}

/// The advice where only another conversion helps.
pub(crate) const CONVERT_ANEW: &str = "convert the model anew from a folder with its tokenizer";

impl Error {
    pub(crate) fn vocabulary(key: impl Into<String>, fault: impl Into<String>) -> Self {
        Self::Vocabulary { key: key.into(), fault: fault.into(), help: CONVERT_ANEW }
    }
}

impl From<Error> for gguf::Error {
    fn from(error: Error) -> Self {
        let finding = gguf::Finding::error("tokenizer", error.to_string());
        Self::File(Box::new(finding))
    }
}
