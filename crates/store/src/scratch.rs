//! Temporary directories. Error messages name the directory that contains them, because the user does not know the
//! temporary one.

use std::io;
use std::path::Path;

use gguf::Error;
use tempfile::TempDir;

/// Creates a temporary directory in the directory of the system (`TMPDIR`).
///
/// # Errors
/// If it cannot be created.
pub fn directory() -> Result<TempDir, Error> {
    // The original error names the path of the new directory.
    tempfile::tempdir().map_err(|fault| failed(fault.kind().into()))
}

/// Replaces the path of a temporary directory in an error.
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
            io::Error::new(source.kind(), "no such directory; TMPDIR names another")
        }
        _ => source,
    };
    Error::environment("use a temporary directory in", &std::env::temp_dir(), source)
}
