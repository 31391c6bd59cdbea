//! Results of statements and expressions.

use crate::jinja::{Error, ErrorKind};

/// Why a statement did not end as usual.
#[derive(Debug)]
pub enum Stop {
    Error(Error),
    /// `{% break %}`, which passes through everything up to a loop, even through a macro.
    Break,
    /// `{% continue %}`, as `break`.
    Continue,
}

pub type Result<T> = std::result::Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Stop {
    /// Sets the line of an error, unless it is known.
    pub fn at(self, line: usize) -> Self {
        match self {
            Self::Error(error) => Self::Error(error.at(line)),
            other => other,
        }
    }

    /// Converts to an error at the end of a template.
    pub fn into_error(self) -> Error {
        match self {
            Self::Error(error) => error,
            Self::Break => Error::new(ErrorKind::Failed("`break` outside of a loop".into())),
            Self::Continue => Error::new(ErrorKind::Failed("`continue` outside of a loop".into())),
        }
    }
}

/// Returns the error of a failed operation.
pub fn failed<T>(cause: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Failed(cause.into())).into())
}
