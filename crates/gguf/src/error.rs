//! Errors, told apart by whose fault they are.

use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// A failed operation on a GGUF file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment: a file that cannot be read or written, a full disk.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Environment {
        /// What was attempted, as a verb: `open`, `map`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file, or the header that was to be written, breaks a rule of the format.
    #[error("{0}")]
    File(Box<Finding>),
    /// The same, of one file among several.
    #[error("{path}: {finding}", path = path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// The rule it breaks.
        finding: Box<Finding>,
    },
    /// A file that is no GGUF, such as one of a checkpoint, is at fault.
    #[error("{path}: {what}; {help}", path = path.display())]
    Input {
        /// The file at fault.
        path: PathBuf,
        /// What is wrong, and where in the file: field, tensor, byte.
        what: String,
        /// What to do about it.
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
    /// The request is at fault: an option that does not go with this input.
    #[error("{what}; {help}")]
    Request {
        /// What cannot be done.
        what: String,
        /// What to ask for instead.
        help: String,
    },
    /// There is something under the name of an output, and it is not to be replaced.
    #[error("{path} exists already", path = .0.display())]
    Exists(PathBuf),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The caller asked for something that does not exist or does not fit.
    #[error("{0}")]
    Caller(String),
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A file that cannot be read or written, a full disk.
    Environment,
    /// What was read.
    Input,
    /// What was asked for.
    Caller,
    /// Nobody's: somebody asked to stop.
    Interrupted,
}

impl Error {
    /// A fault of the request.
    pub fn request(_code: &'static str, what: impl Into<String>, help: impl Into<String>) -> Self {
        let (what, help) = (what.into(), help.into());
        if help.is_empty() { Self::Caller(what) } else { Self::Request { what, help } }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Environment { .. } => Fault::Environment,
            Self::Caller(_) | Self::Request { .. } | Self::Exists(_) => Fault::Caller,
            Self::Interrupted => Fault::Interrupted,
            _ => Fault::Input,
        }
    }

    /// An operating-system failure while doing `action` to `path`.
    pub fn environment(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Environment { action, path: path.to_owned(), source }
    }

    /// A fault of the file at `path`.
    pub fn input(path: &Path, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Input { path: path.to_owned(), what: what.into(), help: help.into() }
    }

    /// A fault in the data of a tensor.
    pub fn weights(tensor: &str, what: String) -> Self {
        Self::Weights {
            tensor: tensor.to_owned(),
            what,
            help: "convert it from another source".into(),
        }
    }

    /// A failed read of `path`.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Self::environment("read", path, source)
    }

    /// The data of a tensor are at fault, as whoever computes with them finds out.
    pub fn data(tensor: &str, what: impl Into<Box<str>>) -> Self {
        let finding = Finding::error("data-unreadable", what).tensor(tensor);
        Self::File(Box::new(finding.help("the file is damaged: download or convert it again")))
    }

    /// Names the file that is at fault, where the error is about one and does not name it yet.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File(finding) => Self::InFile { path: path.to_owned(), finding },
            other => other,
        }
    }
}
