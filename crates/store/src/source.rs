//! Random-access byte sources for tensor data.

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use gguf::Error;

use crate::advice::Advice;
use crate::edit::reading::prepare_read;
use crate::map::FileMap;
use crate::position::read_exact_at;

/// Bytes with random access, readable from many threads concurrently.
pub trait Source: Send + Sync {
    /// Returns the number of bytes.
    fn byte_len(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Environment`] if they cannot be read, also if the source is too short.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;

    /// Returns a string that changes when the bytes do, also between runs, to decide whether a job
    /// can be resumed. Not for messages. `None` if changes cannot be detected.
    fn identity(&self) -> Option<String> {
        None
    }

    /// Returns the path or URL of the file, as shown in messages; `None` if the bytes do not come
    /// from a single file.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Returns all bytes if they are in memory or mapped; `None` if they have to be read.
    fn as_slice(&self) -> Option<&[u8]> {
        None
    }

    /// Tells the system what the caller does next with a range of the bytes. Only mapped files pass it on; it changes speed and
    /// memory, never results.
    fn advise(&self, _range: Range<u64>, _advice: Advice) {}
}

/// A local file, both mapped and read by position: a slice of the map needs no copy, and positional
/// reads keep memory at what callers buffer.
///
/// While it is open, its header is not overwritten in place (see [`edit`](crate::edit)). Other
/// programs must not change it in place or truncate it; they may rename another file over it, as
/// [`AtomicFile`](crate::AtomicFile) does.
#[derive(Debug)]
pub struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
    map: FileMap,
}

impl LocalFile {
    /// Opens the file at `path` for reading; nothing is written. Waits while its header is being
    /// overwritten in place.
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be opened or mapped; [`Error::File`] with code
    /// `edit-interrupted` if an in-place edit was interrupted (see
    /// [`recover`](crate::edit::recover())).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = Arc::new(open_regular(path)?);
        prepare_read(&file, path)?;
        let map = FileMap::new(file.clone());
        let map = map.map_err(|source| Error::environment("map", path, source))?;
        Ok(Self { file, path: path.to_owned(), map })
    }

    /// Returns the mapped bytes; clones and slices keep the file mapped.
    pub fn mapped(&self) -> &Bytes {
        self.map.bytes()
    }
}

/// Opens a regular file. A pipe would block until somebody writes to it, and cannot be read at any place.
pub(crate) fn open_regular(path: &Path) -> Result<File, Error> {
    let fail = |source| Error::environment("open", path, source);
    let status = path.metadata().map_err(fail)?;
    if status.is_dir() {
        return Err(fail(std::io::ErrorKind::IsADirectory.into()));
    }
    if !status.is_file() {
        return Err(fail(std::io::Error::other("it is a pipe or a device, not a file")));
    }
    File::open(path).map_err(fail)
}

impl Source for LocalFile {
    fn byte_len(&self) -> u64 {
        self.mapped().len() as u64
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
        Some(self.mapped())
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.map.advise(range.start as usize..range.end as usize, advice);
    }
}

/// Returns the path, length, modification time and, where available, inode and change time, which
/// cannot be set back. The device number is left out: network file systems number it differently on
/// every machine and after every restart.
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Name, length and modification time do not distinguish these files.
    #[test]
    fn identity_detects_replaced_and_overwritten_files() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("m.gguf"), directory.path().join("new.gguf"));
        let identity = || LocalFile::open(&path).unwrap().identity().unwrap();
        std::fs::write(&path, b"old").unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        let keep_time = |path: &Path| File::options().write(true).open(path)?.set_modified(time);
        let old = identity();
        assert_eq!(identity(), old);

        // A replaced file.
        std::fs::write(&new, b"new").unwrap();
        keep_time(&new).unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(path.metadata().unwrap().modified().unwrap(), time);
        let replaced = identity();
        assert_ne!(replaced, old);

        // An overwritten file. File system clocks tick some hundred times a second.
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::write(&path, b"NEW").unwrap();
        keep_time(&path).unwrap();
        assert_ne!(identity(), replaced);
    }
}
