//! Bytes that can be read at any position: the place where tensor data come from.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use gguf::Error;

use crate::edit::reading::ready_to_read;
use crate::map::map;
use crate::position::read_exact_at;

/// Bytes with random access, readable from many threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn byte_len(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Environment`] if they cannot be read, also if there are too few of them.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;

    /// A text that is another one when the bytes are, also in another run: for work that goes on
    /// later. Not for messages. `None` if nobody can tell.
    fn identity(&self) -> Option<String> {
        None
    }

    /// The file that they are of, by the name under which messages speak of it; `None` if they are of
    /// no single file.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// All bytes at once, where they are in memory or mapped; `None` where they have to be read.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }
}

/// A file on this machine, both mapped and read by position: a slice of the map costs no copy, and
/// with reads by position memory stays at what callers buffer.
///
/// As long as it is open, no header is overwritten in place under it (see [`edit`](crate::edit)).
/// Other programs must not change it in place or truncate it; to replace it by another one of the
/// same name, as [`AtomicFile`](crate::AtomicFile) does, is fine.
#[derive(Debug)]
pub struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
    mapped: Bytes,
}

impl LocalFile {
    /// Opens the file at `path` for reading; nothing is written, whatever lies beside it. If its
    /// header is being overwritten, waits until that is done.
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be opened or mapped; [`Error::File`] with code
    /// `edit-interrupted` if its header was not overwritten to the end (see
    /// [`recover`](crate::edit::recover())).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |action| move |source| Error::environment(action, path, source);
        let file = Arc::new(File::open(path).map_err(fail("open"))?);
        if file.metadata().map_err(fail("open"))?.is_dir() {
            return Err(fail("open")(std::io::ErrorKind::IsADirectory.into()));
        }
        ready_to_read(&file, path)?;
        let mapped = map(file.clone()).map_err(fail("map"))?;
        Ok(Self { file, path: path.to_owned(), mapped })
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

    fn identity(&self) -> Option<String> {
        identity(&self.file.metadata().ok()?, &self.path)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn as_slice(&self) -> Option<&[u8]> {
        Some(&self.mapped)
    }
}

/// Length, time of the last change of the content and, where the system has them, number of the
/// file and time of the last change of any kind, which nobody can set back. The number of the
/// device is not in it: network file systems have another one on every machine and after every
/// restart.
pub(crate) fn identity(metadata: &Metadata, path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let len = metadata.len();
    #[cfg(unix)]
    let version = {
        use std::os::unix::fs::MetadataExt;
        let (changed, touched) = (metadata.mtime_nsec(), metadata.ctime_nsec());
        let (mtime, ctime) = (metadata.mtime(), metadata.ctime());
        format!("{} {mtime}.{changed} {ctime}.{touched}", metadata.ino())
    };
    #[cfg(not(unix))]
    let version = format!("{:?}", metadata.modified().ok()?);
    Some(format!("{} {len} {version}", path.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither the name nor the length nor the time of the content tells these files apart.
    #[cfg(unix)]
    #[test]
    fn a_file_that_looks_the_same_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("m.gguf"), directory.path().join("new.gguf"));
        let identity = || LocalFile::open(&path).unwrap().identity().unwrap();
        std::fs::write(&path, b"old").unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        let keep_time = |path: &Path| File::options().write(true).open(path)?.set_modified(time);
        let old = identity();
        assert_eq!(identity(), old);

        // In another file.
        std::fs::write(&new, b"new").unwrap();
        keep_time(&new).unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(path.metadata().unwrap().modified().unwrap(), time);
        let replaced = identity();
        assert_ne!(replaced, old);

        // In the same one. Clocks of file systems tick some hundred times a second.
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::write(&path, b"NEW").unwrap();
        keep_time(&path).unwrap();
        assert_ne!(identity(), replaced);
    }
}
