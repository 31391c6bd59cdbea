//! Checks before a file is read.

use std::fs::File;
use std::path::Path;

use gguf::Error;

use super::{lock, overwrite};

/// Prepares an open file for reading: locks it against in-place edits and refuses an interrupted
/// edit. Holds as long as the file is open.
///
/// # Errors
/// As [`LocalFile::open`](crate::LocalFile::open).
pub(crate) fn prepare_read(file: &File, path: &Path) -> Result<(), Error> {
    lock::share(file, path)?;
    overwrite::refuse_interrupted(file, path)
}
