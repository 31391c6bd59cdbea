//! Memory maps: the only module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::MmapOptions;

/// Maps an open file read-only. Clones and slices of the bytes keep the file mapped and open.
pub(crate) fn map(file: Arc<File>) -> io::Result<Bytes> {
    map_with(&MmapOptions::new(), file)
}

/// Maps a part of an open file read-only: `len` bytes from `offset` on. Clones and slices of the bytes keep it mapped and the
/// file open. Nobody may change or truncate the part meanwhile; the file may grow.
///
/// # Errors
/// If the system cannot map it.
pub fn map_part(file: Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    map_with(MmapOptions::new().offset(offset).len(len), file)
}

fn map_with(options: &MmapOptions, file: Arc<File>) -> io::Result<Bytes> {
    // SAFETY: the map is private to this process and read-only. Rust cannot rule out that another
    // process changes or truncates the file; the documentation of `LocalFile` makes that the
    // caller's duty, as every program that maps model files does. The writers of this crate never
    // do it: they write a new file and rename it over the old one, or they hold the file's
    // exclusive lock, which they cannot get while the file is open here (see `edit/lock.rs`).
    // Callers of `map_part` hold such a lock, and only append.
    let map = unsafe { options.map(&*file) }?;
    Ok(Bytes::from_owner(Mapped { map, _file: file }))
}

struct Mapped {
    map: memmap2::Mmap,
    /// Keeps the shared lock, which prevents in-place edits.
    _file: Arc<File>,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
