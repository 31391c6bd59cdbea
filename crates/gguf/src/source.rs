//! Bytes that can be read at any position: the place where tensor data come from.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::edit;
use crate::error::Error;

/// Bytes with random access, readable from many threads at once.
pub trait Source: Send + Sync {
    /// The number of bytes.
    fn byte_len(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::Environment`] if they cannot be read, also if there are too few of them.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error>;
}

/// A file on this machine, read by position: no map, so memory stays at what callers buffer.
///
/// As long as it is open, no header is overwritten in place under it (see [`edit`](crate::edit)).
#[derive(Debug)]
pub struct LocalFile {
    file: Arc<File>,
    path: PathBuf,
    len: u64,
}

impl LocalFile {
    /// Opens the file at `path` for reading; nothing is written, whatever lies beside it. If its
    /// header is being overwritten, waits until that is done.
    ///
    /// # Errors
    /// [`Error::Environment`] if it cannot be opened; [`Error::File`] with code `edit-interrupted` if
    /// its header was not overwritten to the end (see [`recover`](crate::edit::recover)).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |source| Error::environment("open", path, source);
        let file = File::open(path).map_err(fail)?;
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(fail(std::io::ErrorKind::IsADirectory.into()));
        }
        edit::ready_to_read(&file, path)?;
        Ok(Self { file: Arc::new(file), path: path.to_owned(), len: metadata.len() })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file itself.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// A text that is another one when the file is another one or has been written to: for work
    /// that goes on later. Not for messages.
    ///
    /// It has the length, the time of the last change of the content and, where the system has
    /// them, the number of the file and the time of the last change of any kind, which nobody can
    /// set back. The number of the device is not in it: network file systems have another one on
    /// every machine and after every restart.
    ///
    /// # Errors
    /// [`Error::Environment`] if the system does not tell.
    pub fn identity(&self) -> Result<String, Error> {
        let fail = |source| Error::environment("look at", &self.path, source);
        let metadata = self.file.metadata().map_err(fail)?;
        let path = self.path.canonicalize().map_err(fail)?;
        let len = metadata.len();
        #[cfg(unix)]
        let version = {
            use std::os::unix::fs::MetadataExt;
            let (changed, touched) = (metadata.mtime_nsec(), metadata.ctime_nsec());
            let (mtime, ctime) = (metadata.mtime(), metadata.ctime());
            format!("{} {mtime}.{changed} {ctime}.{touched}", metadata.ino())
        };
        #[cfg(not(unix))]
        let version = format!("{:?}", metadata.modified().map_err(fail)?);
        Ok(format!("{} {len} {version}", path.display()))
    }
}

impl Source for LocalFile {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        read_exact_at(&self.file, buffer, offset)
            .map_err(|source| Error::environment("read", &self.path, source))
    }
}

/// Bytes in memory.
impl Source for Vec<u8> {
    fn byte_len(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(buffer.len());
        let bytes = self.get(range).ok_or_else(|| {
            Error::environment(
                "read",
                Path::new("bytes in memory"),
                std::io::ErrorKind::UnexpectedEof.into(),
            )
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
pub(crate) fn read_exact_at(
    file: &File,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> std::io::Result<()> {
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
