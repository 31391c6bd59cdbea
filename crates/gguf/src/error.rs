//! Errors, told apart by whose fault they are.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// A failed operation on a model, or on a file that becomes one.
///
/// What is at fault is told by [`Error::fault`], which kind of fault it is by [`Error::code`]; the
/// codes stand in [`codes`](crate::codes).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The environment: a file that cannot be read or written, a full disk, a remote server.
    #[error("cannot {action} {path}: {reason}", path = path.display(), reason = reason(action, source))]
    Environment {
        /// What was attempted, as a verb: `open`, `map`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file that was read, or the header that was to be written, is at fault.
    #[error("{0}")]
    File(Box<Finding>),
    /// The same, of one file among several, which need not be a GGUF.
    #[error("{path}: {finding}", path = path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        finding: Box<Finding>,
    },
    /// There is something under the name of an output, and it is not to be replaced.
    #[error("{path} exists already", path = .0.display())]
    Exists(PathBuf),
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The caller asked for something that does not exist, or does not go with this input.
    #[error("{0}")]
    Caller(Box<Finding>),
}

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The machine or the network; a retry may succeed.
    Environment,
    /// The input data.
    Input,
    /// The caller's request.
    Caller,
    /// None: the user interrupted the operation.
    Interrupted,
}

impl Error {
    /// An operating-system failure while doing `action` to `path`.
    pub fn environment(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Environment { action, path: path.to_owned(), source }
    }

    /// A fault of the file at `path`: its code, what is wrong, and what to do about it.
    pub fn input(
        code: &'static str,
        path: &Path,
        what: impl Into<Box<str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Self {
        let finding = Box::new(Finding::error(code, what).help(help));
        Self::InFile { path: path.to_owned(), finding }
    }

    /// A fault in the data of a tensor, which cannot be computed with.
    pub fn weights(tensor: &str, what: impl Into<Box<str>>) -> Self {
        Finding::error("weights-unusable", what)
            .tensor(tensor)
            .help("convert the model from another source")
            .into()
    }

    /// A fault of the caller: its code, what cannot be done, and what to ask for instead, which may
    /// be empty.
    pub fn request(
        code: &'static str,
        what: impl Into<Box<str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Caller(Box::new(Finding::error(code, what).help(help)))
    }

    /// A failed read of `path`.
    pub fn read(path: &Path, source: io::Error) -> Self {
        Self::environment("read", path, source)
    }

    /// Names the file that is at fault, where the error is about one and does not name it yet.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::File(finding) => Self::InFile { path: path.to_owned(), finding },
            other => other,
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Environment { .. } => Fault::Environment,
            Self::File(_) | Self::InFile { .. } => Fault::Input,
            Self::Exists(_) | Self::Caller(_) => Fault::Caller,
            Self::Interrupted => Fault::Interrupted,
        }
    }

    /// What is wrong, of a file or of a request.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Self::File(finding) | Self::InFile { finding, .. } | Self::Caller(finding) => {
                Some(finding)
            }
            Self::Environment { .. } | Self::Exists(_) | Self::Interrupted => None,
        }
    }

    /// The stable name of this kind of error, one of the table in [`codes`](crate::codes).
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

/// Of the file that is read; [`Error::in_file`] says which.
impl From<Finding> for Error {
    fn from(finding: Finding) -> Self {
        Self::File(Box::new(finding))
    }
}

/// What the operating system said, in plain words; what another part of a program said, as it is.
fn reason(action: &str, source: &io::Error) -> Cow<'static, str> {
    if source.get_ref().is_some() {
        return source.to_string().into();
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
        _ => return source.to_string().into(),
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_speaks_plainly() {
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
    }
}
