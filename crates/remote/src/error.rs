//! What can go wrong with a file that is far away.

use std::io::ErrorKind;
use std::time::Duration;

/// A location that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The user's word is not a location.
    #[error("`{word}` is not a location: {why}")]
    Location {
        /// What was given.
        word: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// A folder, repository or prefix does not hold exactly one model.
    #[error(transparent)]
    Choice(gguf::Choice),
    /// A file on this machine.
    #[error(transparent)]
    Local(#[from] gguf::Error),
    /// A file elsewhere.
    #[error("cannot read {place}: {fault}")]
    Remote {
        /// Its URL, without a query, which may hold a signature.
        place: String,
        /// What went wrong.
        fault: Fault,
    },
}

/// Why a request did not give the bytes that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No connection, or one that broke or stalled. Worth another try.
    #[error("{0}")]
    Connection(String),
    /// No connection, and another try would not help: no such host, a bad certificate.
    #[error("{0}")]
    Unreachable(String),
    /// The server cannot answer now. Worth another try.
    #[error("the server is busy or failing (HTTP status {status}); try again later")]
    Busy {
        /// HTTP status.
        status: u16,
        /// How long the server asks to wait.
        wait: Option<Duration>,
    },
    /// The server says no.
    #[error("HTTP status {status}: {hint}")]
    Status {
        /// HTTP status.
        status: u16,
        /// What the server says about it, and what to do.
        hint: String,
    },
    /// Redirects without end, to nowhere, or to a less safe place.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// The server sends whole files only, and the bytes wanted stand too far inside.
    #[error(
        "the server ignores requests for a part of the file, and byte {0} is too far inside to \
         read all before it; download the file and use the copy"
    )]
    NoRanges(u64),
    /// The server's statement of what it sends is missing, or not what was asked for.
    #[error("the server's answer does not fit the request: {0}; another mirror may do better")]
    Answer(String),
    /// The file is not the one that was opened.
    #[error("the file changed while it was read: its length, ETag or date differs; open it again")]
    Changed,
    /// The body is something else than the file.
    #[error("{0}")]
    NotTheFile(&'static str),
    /// The store has no object of this name.
    #[error("there is no such object")]
    Missing,
    /// An object store's client gave up.
    #[error("{0}")]
    Store(String),
}

impl Fault {
    /// True if the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Busy { .. })
    }

    /// True if there is nothing of this name.
    fn is_missing(&self) -> bool {
        matches!(self, Self::Missing | Self::Status { status: 404 | 410, .. })
    }
}

/// What was named is the caller's fault, what a server does or says is the environment's.
impl From<Error> for gguf::Error {
    fn from(error: Error) -> Self {
        let what = error.to_string();
        match error {
            Error::Local(error) => error,
            Error::Location { .. } => Self::request("location-invalid", what, ""),
            Error::Choice(choice) => choice.into(),
            Error::Remote { place, fault } => {
                let kind = if fault.is_missing() { ErrorKind::NotFound } else { ErrorKind::Other };
                Self::environment("read", place.as_ref(), std::io::Error::new(kind, fault))
            }
        }
    }
}
