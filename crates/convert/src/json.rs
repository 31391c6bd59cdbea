//! JSON files of a checkpoint directory, read with errors that name the file and the place.

use std::path::Path;

use serde_json::Value;

use crate::Error;

/// Parses the JSON file at `path`.
///
/// # Errors
/// If it cannot be read, or is not JSON: with line and column.
pub(crate) fn read(path: &Path) -> Result<Value, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::read(path, source))?;
    parse(path, &bytes)
}

/// Parses the content of the JSON file at `path`.
///
/// # Errors
/// If it is not JSON: with line and column.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|fault| {
        Error::input(path, format!("not valid JSON: {fault}"), "download the file again")
    })
}

/// As [`read`], but `None` if there is no such file.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Value>, Error> {
    if path.is_file() { read(path).map(Some) } else { Ok(None) }
}
