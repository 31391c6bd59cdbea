//! What readers have to know of edits.

use std::fs::File;
use std::path::Path;

use gguf::Error;

use super::{lock, overwrite};

/// What an open file needs before it is read: nobody overwrites its header, and nobody was
/// interrupted at that. Holds as long as the file is open.
///
/// # Errors
/// As [`LocalFile::open`](crate::LocalFile::open).
pub(crate) fn ready_to_read(file: &File, path: &Path) -> Result<(), Error> {
    lock::share(file, path)?;
    overwrite::refuse_interrupted(file, path)
}
