//! Mismatches between a tensor and an operation, or between tensors.

use std::fmt;

/// Explains why a tensor does not match an operation, as the predicate of a sentence: `has 7 rows,
/// which do not divide into 2 groups`.
///
/// Callers that know the file and the tensor's name in it turn this into an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMismatch(Box<str>);

impl fmt::Display for TensorMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TensorMismatch {}

impl From<String> for TensorMismatch {
    fn from(what: String) -> Self {
        Self(what.into())
    }
}

impl From<&str> for TensorMismatch {
    fn from(what: &str) -> Self {
        Self(what.into())
    }
}
