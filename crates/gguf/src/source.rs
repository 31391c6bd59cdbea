//! Bytes that can be read at any position: the place where tensor data come from.

use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::edit::recover;
use crate::error::Error;
use crate::map::map;

/// Bytes with random access, readable from many threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn byte_len(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Environment`] if they cannot be read, also if there are too few of them.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;

    /// All bytes at once, where they are in memory or mapped; `None` where they have to be read.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }
}

/// A file on this machine, both mapped and read by position: a slice of the map costs no copy, and
/// with reads by position memory stays at what callers buffer.
///
/// The file must not be changed in place or truncated while it is open; replacing it by another one
/// of the same name, as [`Output`](crate::Output) does, is fine.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    path: PathBuf,
    mapped: Bytes,
}

impl LocalFile {
    /// Opens the file at `path` for reading. An edit of it that was interrupted is undone first
    /// (see [`recover`](crate::edit::recover)).
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
        let mapped = map(&file).map_err(fail("map"))?;
        Ok(Self { file, path: path.to_owned(), mapped })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes, which stay mapped as long as a clone or a slice of them is there.
    pub fn mapped(&self) -> &Bytes {
        &self.mapped
    }
}

impl Source for LocalFile {
    fn byte_len(&self) -> u64 {
        self.mapped.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        read_exact_at(&self.file, buffer, offset)
            .map_err(|source| Error::environment("read", &self.path, source))
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.mapped)
    }
}

macro_rules! in_memory {
    ($($ty:ty),*) => {
        $(/// Bytes in memory.
        impl Source for $ty {
            fn byte_len(&self) -> u64 {
                self.len() as u64
            }

            fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
                copy_at(self, buffer, offset)
            }

            fn as_slice(&self) -> Option<&[u8]> {
                Some(self)
            }
        })*
    };
}
in_memory!(Bytes, Vec<u8>);

fn copy_at(bytes: &[u8], buffer: &mut [u8], offset: u64) -> Result<(), Error> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = bytes.get(start..start.saturating_add(buffer.len())).ok_or_else(|| {
        let ended = std::io::ErrorKind::UnexpectedEof.into();
        Error::environment("read", Path::new("bytes in memory"), ended)
    })?;
    buffer.copy_from_slice(bytes);
    Ok(())
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, buffer, offset)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[n..];
        offset += n as u64;
    }
    Ok(())
}
