//! Files mapped into memory: the one module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

/// All bytes of an open file, mapped read-only. Clones and slices of them keep the file mapped, and
/// open. Nothing is read before it is looked at.
pub(crate) fn map(file: Arc<File>) -> io::Result<Bytes> {
    // SAFETY: the map is private to us and read-only. What Rust cannot rule out is that another
    // process changes or truncates the file; the documentation of `LocalFile` makes that the
    // caller's duty, as every program that maps model files does. Our own writers never do it: they
    // write a new file and rename it over the old one, or they hold the file's exclusive lock,
    // which they do not get while it is open here (see `edit/lock.rs`).
    let map = unsafe { memmap2::Mmap::map(&*file) }?;
    Ok(Bytes::from_owner(Mapped { map, _file: file }))
}

struct Mapped {
    map: memmap2::Mmap,
    /// Open, it keeps those away who would change it in place.
    _file: Arc<File>,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
