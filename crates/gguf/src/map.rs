//! Files mapped into memory: the one module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::source::LocalFile;

/// A file mapped read-only. Dereferences to its bytes.
#[derive(Debug)]
pub struct Map {
    map: memmap2::Mmap,
    /// Open, it keeps those away who would change it in place.
    _file: Arc<File>,
}

impl Map {
    /// Maps the file at `path`. Nothing is read before it is looked at, and nothing is written.
    ///
    /// The file must not be changed in place or truncated while it is mapped; replacing it by
    /// another one of the same name, as [`Output`](crate::Output) does, is fine.
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be mapped; else as [`LocalFile::open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::of(&LocalFile::open(path)?)
    }

    /// Maps a file that is open.
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be mapped.
    pub(crate) fn of(source: &LocalFile) -> Result<Self, Error> {
        let file = source.file().clone();
        // SAFETY: the map is private to us and read-only. What Rust cannot rule out is that
        // another process changes or truncates the file; the documentation above makes that the
        // caller's duty, as every program that maps model files does. Our own writers never do it:
        // they write a new file and rename it over the old one, or they hold the file's exclusive
        // lock, which they do not get while it is open here (see `edit/lock.rs`).
        let map = unsafe { memmap2::Mmap::map(&*file) }
            .map_err(|fault| Error::environment("map", source.path(), fault))?;
        Ok(Self { map, _file: file })
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
