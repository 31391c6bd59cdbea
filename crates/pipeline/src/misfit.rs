//! Why tensors do not fit: a change, or one another.

use std::fmt;

/// Why a tensor does not fit what is to be done with it, as the end of a sentence about the tensor:
/// `has 7 rows, which do not divide into 2 groups`.
///
/// Whoever knows the file, and the name of the tensor in it, makes an error of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit(Box<str>);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl From<String> for Misfit {
    fn from(what: String) -> Self {
        Self(what.into())
    }
}

impl From<&str> for Misfit {
    fn from(what: &str) -> Self {
        Self(what.into())
    }
}
