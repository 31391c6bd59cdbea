//! Errors of remote files.

use std::io::ErrorKind;
use std::time::Duration;

/// Error of opening a location.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The string is not a location.
    #[error("`{word}` is not a location: {reason}")]
    Location {
        /// The string as given, without secrets.
        word: String,
        /// Reason, with the expected form.
        reason: String,
    },
    /// A directory, repository or prefix does not hold exactly one model.
    #[error(transparent)]
    SelectModel(gguf::SelectModelError),
    /// Error of a local file.
    #[error(transparent)]
    Local(#[from] gguf::Error),
    /// Error of a remote file.
    #[error("cannot read {place}: {fault}")]
    Remote {
        /// URL without its query, which may hold a signature.
        place: String,
        /// Cause.
        fault: Fault,
    },
}

/// Cause of a failed request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No connection, or one that broke or timed out. The request is retried.
    #[error("{0}")]
    Connection(String),
    /// No connection, and a retry would not help: unknown host, invalid certificate.
    #[error("{0}")]
    Unreachable(String),
    /// The server cannot respond now. The request is retried.
    #[error("the server is busy or failing (HTTP status {status}); try again later")]
    Busy {
        /// HTTP status.
        status: u16,
        /// Delay requested by the server.
        wait: Option<Duration>,
    },
    /// The server refuses the request.
    #[error("HTTP status {status}: {hint}")]
    Status {
        /// HTTP status.
        status: u16,
        /// Message of the server and advice.
        hint: String,
    },
    /// Too many redirects, or one that is not allowed.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// The server does not support range requests, and the requested bytes are too far from the
    /// start.
    #[error(
        "the server does not support range requests, and byte {0} is too far from the start to \
             read everything before it; download the file and use the local copy"
    )]
    NoRanges(u64),
    /// A response header is missing or does not match the request.
    #[error("the response of the server does not match the request: {0}; try another mirror")]
    Response(String),
    /// The file is not the version that was opened.
    #[error("the file changed while it was read: its length, ETag or date differs; open it again")]
    Changed,
    /// The body is not the file.
    #[error("{0}")]
    NotTheFile(&'static str),
    /// The object does not exist.
    #[error("the object does not exist")]
    Missing,
    /// Error of an object store client.
    #[error("{0}")]
    Store(String),
}

impl Fault {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Busy { .. })
    }

    /// Whether the file does not exist.
    fn is_missing(&self) -> bool {
        matches!(self, Self::Missing | Self::Status { status: 404 | 410, .. })
    }
}

/// An invalid name is a caller error; errors of servers are environment errors.
impl From<Error> for gguf::Error {
    fn from(error: Error) -> Self {
        let what = error.to_string();
        match error {
            Error::Local(error) => error,
            Error::Location { .. } => Self::request("location-invalid", what, ""),
            Error::SelectModel(choice) => choice.into(),
            Error::Remote { place, fault } => {
                let kind = if fault.is_missing() { ErrorKind::NotFound } else { ErrorKind::Other };
                Self::environment("read", place.as_ref(), std::io::Error::new(kind, fault))
            }
        }
    }
}
