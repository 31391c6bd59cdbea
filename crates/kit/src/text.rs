//! Text files that a user names.

use std::io::ErrorKind;
use std::path::Path;

use gguf::Finding;

use crate::Error;

/// The content of a text file.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|fault| match fault.kind() {
        ErrorKind::InvalidData => {
            let finding = Finding::error("file-not-text", "is not valid UTF-8");
            Error::from(finding).in_file(path)
        }
        _ => Error::environment("read", path, fault),
    })
}
