//! Errors, classified by cause.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Error of an operation on a model, or on a file that becomes a model.
///
/// [`Error::fault`] returns the cause, [`Error::code`] a stable code; the crate `gguf-check`
/// explains all codes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment failed: an unreadable file, a full disk, a remote server.
    #[error("cannot {action} {path}: {reason}", path = path.display(), reason = reason(action, source))]
    Environment {
        /// Attempted action, as a verb: `open`, `map`, `write`.
        action: &'static str,
        /// Affected file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The input file, or the header to write, is invalid.
    #[error("{0}")]
    File(Box<Finding>),
    /// One of several files, not necessarily a GGUF, is invalid.
    #[error("{path}: {finding}", path = path.display())]
    InFile {
        /// Affected file.
        path: PathBuf,
        /// Fault in the file.
        finding: Box<Finding>,
    },
    /// The output exists, and the caller did not allow to replace it.
    #[error("{path} exists already", path = .0.display())]
    Exists(PathBuf),
    /// The operation was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The request is invalid, or does not apply to this input.
    #[error("{0}")]
    Caller(Box<Finding>),
}

/// Cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The machine or the network; a retry may succeed.
    Environment,
    /// The input data.
    Input,
    /// The request of the caller.
    Caller,
    /// An interruption.
    Interrupted,
}

impl Error {
    /// Returns the error for an operating-system failure of `action` on `path`.
    pub fn environment(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Environment { action, path: path.to_owned(), source }
    }

    /// Returns the error for an invalid file at `path`: code, fault and advice.
    pub fn input(
        code: &'static str,
        path: &Path,
        what: impl Into<Box<str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Self {
        let finding = Box::new(Finding::error(code, what).help(help));
        Self::InFile { path: path.to_owned(), finding }
    }

    /// Returns the error for tensor data that cannot be used in computations.
    pub fn weights(tensor: &str, what: impl Into<Box<str>>) -> Self {
        Finding::error("weights-unusable", what)
            .tensor(tensor)
            .help("convert the model from another source")
            .into()
    }

    /// Returns the error for an invalid request: code, fault and advice, which may be empty.
    pub fn request(
        code: &'static str,
        what: impl Into<Box<str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Caller(Box::new(Finding::error(code, what).help(help)))
    }

    /// Returns the error for a failed read of `path`.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Self::environment("read", path, source)
    }

    /// Adds the path to an error about a file without a path.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File(finding) => Self::InFile { path: path.to_owned(), finding },
            other => other,
        }
    }

    /// Returns the cause.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Environment { .. } => Fault::Environment,
            Self::File(_) | Self::InFile { .. } => Fault::Input,
            Self::Exists(_) | Self::Caller(_) => Fault::Caller,
            Self::Interrupted => Fault::Interrupted,
        }
    }

    /// Returns the finding of an error about a file or a request.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Self::File(finding) | Self::InFile { finding, .. } | Self::Caller(finding) => {
                Some(finding)
            }
            Self::Environment { .. } | Self::Exists(_) | Self::Interrupted => None,
        }
    }

    /// Returns the stable code of this kind of error; the crate `gguf-check` explains all codes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Environment { .. } => "environment",
            Self::Exists(_) => "output-exists",
            Self::Interrupted => "interrupted",
            Self::File(finding) | Self::InFile { finding, .. } | Self::Caller(finding) => {
                finding.code
            }
        }
    }
}

/// Converts a finding about the input; [`Error::in_file`] adds its path.
impl From<Finding> for Error {
    fn from(finding: Finding) -> Self {
        Self::File(Box::new(finding))
    }
}

/// Returns the description of an operating-system error without its number; other errors as they
/// are.
fn reason(action: &str, source: &io::Error) -> Cow<'static, str> {
    if source.get_ref().is_some() {
        return source.to_string().into();
    }
    if source.raw_os_error().is_some_and(is_open_elsewhere) {
        return "another program has it open; close that program and try again".into();
    }
    let makes = ["create", "write", "rename to"].contains(&action);
    let words = match source.kind() {
        io::ErrorKind::NotFound if makes => "no such directory",
        io::ErrorKind::NotFound if action == "list" => "no such directory",
        io::ErrorKind::NotFound => "no such file",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::IsADirectory => "it is a directory",
        io::ErrorKind::NotADirectory => "a part of the path is not a directory",
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::InvalidFilename => "the name is too long or not allowed",
        _ => {
            let text = source.to_string();
            return text.split(" (os error").next().unwrap_or_default().to_owned().into();
        }
    };
    words.into()
}

/// Whether this error of Windows says that another program has a file open, locked or mapped.
fn is_open_elsewhere(code: i32) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    const LOCK_VIOLATION: i32 = 33;
    const USER_MAPPED_FILE: i32 = 1224;
    cfg!(windows) && [SHARING_VIOLATION, LOCK_VIOLATION, USER_MAPPED_FILE].contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_errors_are_plain() {
        let said =
            |action, source| Error::environment(action, Path::new("a/b"), source).to_string();
        let of = |kind: io::ErrorKind| io::Error::from(kind);
        assert_eq!(said("open", of(io::ErrorKind::NotFound)), "cannot open a/b: no such file");
        assert_eq!(said("open", io::Error::from_raw_os_error(2)), "cannot open a/b: no such file");
        assert_eq!(
            said("create", of(io::ErrorKind::NotFound)),
            "cannot create a/b: no such directory"
        );
        assert_eq!(
            said("read", of(io::ErrorKind::PermissionDenied)),
            "cannot read a/b: permission denied"
        );
        assert_eq!(
            said("open", of(io::ErrorKind::IsADirectory)),
            "cannot open a/b: it is a directory"
        );
        assert_eq!(
            said("open", io::Error::other("the cable is cut")),
            "cannot open a/b: the cable is cut"
        );
        // Descriptions of the system come without their number.
        #[cfg(unix)]
        assert_eq!(
            said("read", io::Error::from_raw_os_error(5)),
            "cannot read a/b: Input/output error"
        );
        #[cfg(windows)]
        for code in [32, 33, 1224] {
            let text = said("rename to", io::Error::from_raw_os_error(code));
            assert!(
                text.starts_with("cannot rename to a/b: another program has it open;"),
                "{text}"
            );
        }
    }
}
