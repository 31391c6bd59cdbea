//! Directories for the time of a run, which no message names: the user's place is the one that they are in.

use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::Error;

/// A new directory, where the system has those (`TMPDIR` says where).
///
/// # Errors
/// If it cannot be made there.
pub fn directory() -> Result<TempDir, Error> {
    // What comes with the error names the directory that was tried.
    tempfile::tempdir().map_err(|fault| failed(fault.kind().into()))
}

/// An error of work in `scratch`, which a user neither named nor ever sees, about the place that it is in.
pub fn outside(error: Error, scratch: &Path) -> Error {
    match error {
        Error::Environment { path, source, .. } if path.starts_with(scratch) => failed(source),
        Error::InFile { path, finding } if path.starts_with(scratch) => Error::File(finding),
        other => other,
    }
}

fn failed(source: io::Error) -> Error {
    let source = match source.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(source.kind(), "there is no such directory; TMPDIR names another")
        }
        _ => source,
    };
    Error::environment("use a temporary directory in", &std::env::temp_dir(), source)
}
