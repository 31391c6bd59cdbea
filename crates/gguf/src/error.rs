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

impl Error {
    /// An operating-system failure while doing `action` to `path`.
    pub fn environment(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Environment { action, path: path.to_owned(), source }
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
