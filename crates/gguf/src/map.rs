//! Files mapped into memory: the one module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use crate::edit::recover;
use crate::error::Error;

/// A file mapped read-only. Dereferences to its bytes.
#[derive(Debug)]
pub struct Map(memmap2::Mmap);

impl Map {
    /// Maps the file at `path`. Nothing is read before it is looked at.
    ///
    /// The file must not be changed in place or truncated while it is mapped; replacing it by
    /// another one of the same name, as [`Output`](crate::Output) does, is fine.
    ///
    /// An edit of it that was interrupted is undone first (see [`recover`](crate::edit::recover)).
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self, Error> {
        recover(path)?;
        let fail = |action| move |source| Error::environment(action, path, source);
        let file = File::open(path).map_err(fail("open"))?;
        if file.metadata().map_err(fail("open"))?.is_dir() {
            return Err(fail("open")(std::io::ErrorKind::IsADirectory.into()));
        }
        // SAFETY: the map is private to us and read-only. What Rust cannot rule out is that
        // another process changes or truncates the file; the documentation above makes that the
        // caller's duty, as every program that maps model files does. Our own writers never do
        // it: they write a new file and rename it over the old one.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(fail("map"))?;
        Ok(Self(map))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
