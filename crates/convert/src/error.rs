//! What can go wrong in a conversion, told apart by whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

/// A failed conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment failed: a file cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Environment {
        /// What was attempted, as a verb: `read`, `create`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file of the checkpoint is at fault.
    #[error("{path}: {what}; {help}", path = path.display())]
    Input {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong, and where in the file: field, tensor, byte.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// The request is at fault: an option that does not go with this input.
    #[error("{what}; {help}")]
    Request {
        /// What cannot be done.
        what: String,
        /// What to ask for instead.
        help: String,
    },
    /// A weight of the source is at fault.
    #[error("tensor `{tensor}`: {what}; {help}")]
    Weights {
        /// The tensor, by its name in the output.
        tensor: String,
        /// What is wrong, and where in the tensor.
        what: String,
        /// What to do about it.
        help: String,
    },
    /// The container refused: reading a GGUF, or writing one.
    #[error(transparent)]
    Container(#[from] gguf::Error),
}

impl Error {
    /// A fault of the file at `path`.
    pub(crate) fn input(path: &Path, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { path: path.to_owned(), what: what.into(), help: help.into() }
    }

    /// A fault in the data of a tensor.
    pub(crate) fn weights(tensor: &str, what: String) -> Self {
        Self::Weights {
            tensor: tensor.to_owned(),
            what,
            help: "convert it from another source".into(),
        }
    }

    /// A failed read of `path`.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Environment { action: "read", path: path.to_owned(), source }
    }
}
