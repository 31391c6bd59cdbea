//! Steps of pre-tokenization.

use std::borrow::Cow;
use std::fmt;

/// Step of normalization or pre-tokenization, in a normalized spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Splits at the matches; `behavior` determines to which piece a match belongs.
    Split { regex: Cow<'a, str>, behavior: Cow<'a, str> },
    /// Splits at ASCII and Unicode punctuation.
    Punctuation { behavior: Cow<'a, str> },
    /// Replaces a string.
    Replace { from: Cow<'a, str>, to: Cow<'a, str> },
    /// Maps each byte to a character of the byte-level alphabet.
    Bytes,
    /// Step of an unknown pre-tokenizer.
    Other(Cow<'a, str>),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { regex, behavior } => write!(f, "Split[{behavior}]({regex})"),
            Self::Punctuation { behavior } => write!(f, "Punctuation[{behavior}]"),
            Self::Replace { from, to } => write!(f, "Replace({from:?}, {to:?})"),
            Self::Bytes => f.write_str("Bytes"),
            Self::Other(what) => f.write_str(what),
        }
    }
}
