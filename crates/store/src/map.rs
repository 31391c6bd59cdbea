//! Memory maps: the only module of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::MmapOptions;

use crate::advice::Advice;

/// An open file, mapped read-only.
#[derive(Clone, Debug)]
pub(crate) struct FileMap {
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix systems take advice"))]
    mapped: Arc<Mapped>,
    /// Bytes of the map.
    bytes: Bytes,
}

impl FileMap {
    /// Maps an open file.
    pub fn new(file: Arc<File>) -> io::Result<Self> {
        let mapped = Arc::new(map_with(&MmapOptions::new(), file)?);
        let bytes = Bytes::from_owner(SharedMap(mapped.clone()));
        Ok(Self { mapped, bytes })
    }

    /// Returns the mapped bytes. Clones and slices of them keep the file mapped and open.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Tells the system what happens next to a range of the file. It may ignore that.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix systems take advice"))]
    pub fn advise(&self, range: Range<usize>, advice: Advice) {
        #[cfg(unix)]
        if range.start < range.end && range.end <= self.bytes.len() {
            match advice {
                Advice::WillNeed => self.read_ahead(range),
                Advice::DontNeed | Advice::Evict => self.free(range, advice),
            }
        }
    }

    #[cfg(unix)]
    fn read_ahead(&self, Range { start, end }: Range<usize>) {
        #[cfg(target_os = "linux")]
        if [start, start.midpoint(end), end - 1].iter().all(|at| is_cached(&self.mapped.file, *at))
        {
            return;
        }
        let _ = self.mapped.map.advise_range(memmap2::Advice::WillNeed, start, end - start);
    }

    #[cfg(unix)]
    #[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "only Linux evicts"))]
    fn free(&self, Range { start, end }: Range<usize>, advice: Advice) {
        // SAFETY: pages of a private map that nobody writes have the contents of the file: the next access reads
        // them again. Whether the file may change is discussed in `map_with`.
        let _ = unsafe {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            self.mapped.map.unchecked_advise_range(advice, start, end - start)
        };
        #[cfg(target_os = "linux")]
        if advice == Advice::Evict {
            let len = std::num::NonZero::new((end - start) as u64);
            let advice = rustix::fs::Advice::DontNeed;
            let _ = rustix::fs::fadvise(&*self.mapped.file, start as u64, len, advice);
        }
    }
}

/// Whether a byte of a file is in the page cache. If samples of a range are, advice is omitted, for which the system looks for each
/// page: 24 ms for a file of a gigabyte.
#[cfg(target_os = "linux")]
fn is_cached(file: &File, at: usize) -> bool {
    let mut byte = [0];
    let mut buffers = [io::IoSliceMut::new(&mut byte)];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    rustix::io::preadv2(file, &mut buffers, at as u64, flags) == Ok(1)
}

/// Maps a part of an open file read-only: `len` bytes from `offset` on. Clones and slices of the bytes keep it mapped and the
/// file open. Nobody may change or truncate the part meanwhile; the file may grow.
///
/// # Errors
/// If the system cannot map it.
pub fn map_part(file: Arc<File>, offset: u64, len: usize) -> io::Result<Bytes> {
    let mapped = map_with(MmapOptions::new().offset(offset).len(len), file)?;
    Ok(Bytes::from_owner(mapped))
}

fn map_with(options: &MmapOptions, file: Arc<File>) -> io::Result<Mapped> {
    // SAFETY: the map is private to this process and read-only. Rust cannot rule out that another
    // process changes or truncates the file; the documentation of `LocalFile` makes that the
    // caller's duty, as every program that maps model files does. The writers of this crate never
    // do it: they write a new file and rename it over the old one, or they hold the file's
    // exclusive lock, which they cannot get while the file is open here (see `edit/lock.rs`).
    // Callers of `map_part` hold such a lock, and only append.
    let map = unsafe { options.map(&*file) }?;
    Ok(Mapped { map, file })
}

#[derive(Debug)]
struct Mapped {
    map: memmap2::Mmap,
    /// Keeps the shared lock, which prevents in-place edits.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only kept open"))]
    file: Arc<File>,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

struct SharedMap(Arc<Mapped>);

impl AsRef<[u8]> for SharedMap {
    fn as_ref(&self) -> &[u8] {
        &self.0.map
    }
}
