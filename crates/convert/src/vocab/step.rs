//! What is done to a text before merging.

use std::borrow::Cow;
use std::fmt;

/// One thing that is done to a text before merging, in the only spelling that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Cut at the matches; `behavior` says which piece a match goes to.
    Split { regex: Cow<'a, str>, behavior: Cow<'a, str> },
    /// Cut at ASCII and Unicode punctuation.
    Punctuation { behavior: Cow<'a, str> },
    /// Write one text for another.
    Replace { from: Cow<'a, str>, to: Cow<'a, str> },
    /// Write each byte as a character of the byte-level alphabet.
    Bytes,
    /// Something that no known pre-tokenizer does.
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
