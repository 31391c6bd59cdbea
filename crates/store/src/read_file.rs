//! A local file that is read and never mapped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;

use crate::edit::reading::prepare_read;
use crate::position::read_exact_at;
use crate::source::{Source, identity, open_regular};

/// A local file that is read by position only: if it is truncated, reads fail, where access to a
/// map would kill the process. For programs that keep files open while other programs change them.
///
/// While it is open, its header is not overwritten in place (see [`edit`](crate::edit)).
#[derive(Debug)]
pub struct ReadFile {
    file: Arc<File>,
    path: PathBuf,
    len: u64,
    /// Identity of the file when it was opened.
    identity: Option<String>,
}

/// State of a file since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file is unchanged.
    Unchanged,
    /// The file was changed or replaced.
    Changed,
    /// The file was deleted or renamed.
    Deleted,
}

impl ReadFile {
    /// Opens the file at `path`; nothing is written. Waits while its header is being overwritten in
    /// place.
    ///
    /// # Errors
    /// As [`LocalFile::open`](crate::LocalFile::open).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |source| Error::environment("open", path, source);
        let file = Arc::new(open_regular(path)?);
        let metadata = file.metadata().map_err(fail)?;
        prepare_read(&file, path)?;
        let identity = identity(&metadata, path);
        Ok(Self { file, path: path.to_owned(), len: metadata.len(), identity })
    }

    /// Compares the file with what is at its path now: length, times of the last change, and inode.
    pub fn state(&self) -> FileState {
        match self.path.metadata() {
            Ok(metadata) if identity(&metadata, &self.path) == self.identity => {
                FileState::Unchanged
            }
            Ok(_) => FileState::Changed,
            Err(_) => FileState::Deleted,
        }
    }
}

impl Source for ReadFile {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        read_exact_at(&self.file, buffer, offset)
            .map_err(|source| Error::environment("read", &self.path, source))
    }

    /// Returns the identity when the file was opened, as [`LocalFile`](crate::LocalFile) does.
    fn identity(&self) -> Option<String> {
        self.identity.clone()
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a map, the last line would kill the test process.
    #[test]
    fn truncated_files_fail_to_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.gguf");
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let file = ReadFile::open(&path).unwrap();
        assert_eq!((file.state(), file.byte_len()), (FileState::Unchanged, 100_000));
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(file.state(), FileState::Changed);
        assert!(file.as_slice().is_none());
        let error = file.read_at(&mut [0; 8], 90_000).unwrap_err();
        assert_eq!(error.code(), "environment");
        std::fs::remove_file(&path).unwrap();
        // Older versions of Windows, and Wine, keep the name of a deleted file until it is closed.
        if cfg!(unix) {
            assert_eq!(file.state(), FileState::Deleted);
        }
    }

    #[cfg_attr(windows, ignore = "needs the rename of Windows 10, which Wine 8 does not have")]
    #[test]
    fn replaced_files_are_detected() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("m.gguf"), directory.path().join("new.gguf"));
        std::fs::write(&path, b"old").unwrap();
        let file = ReadFile::open(&path).unwrap();
        std::fs::write(&new, b"new").unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(file.state(), FileState::Changed);
        // The old file stays readable.
        let mut bytes = [0; 3];
        file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"old");
    }
}
