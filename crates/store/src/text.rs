//! Text files.

use std::io::{ErrorKind, Read};
use std::path::Path;

use gguf::{Error, Finding};

/// Reads a UTF-8 text file; `-` is the standard input.
///
/// # Errors
/// If the file cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(path),
    };
    read.map_err(|fault| match fault.kind() {
        ErrorKind::InvalidData => {
            let finding = Finding::error("file-not-text", "is not valid UTF-8");
            Error::from(finding).in_file(path)
        }
        _ => Error::environment("read", path, fault),
    })
}
