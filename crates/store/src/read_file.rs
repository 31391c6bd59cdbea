//! A file on this machine that is read and never mapped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::Error;

use crate::edit::reading::ready_to_read;
use crate::position::read_exact_at;
use crate::source::{Source, identity};

/// A file on this machine that is read by position alone: whoever shortens it gives its readers an error,
/// where a map would end their program. For programs that keep files open while others work on them.
///
/// As long as it is open, no header is overwritten in place under it (see [`edit`](crate::edit)).
#[derive(Debug)]
pub struct ReadFile {
    file: Arc<File>,
    path: PathBuf,
    len: u64,
    /// What it was when it was opened.
    identity: Option<String>,
}

/// What has become of a file since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It is as it was.
    Same,
    /// It was changed, or another file has its name.
    Changed,
    /// There is no file of its name any more.
    Gone,
}

impl ReadFile {
    /// Opens the file at `path`; nothing is written, whatever lies beside it. If its header is being
    /// overwritten, waits until that is done.
    ///
    /// # Errors
    /// As [`LocalFile::open`](crate::LocalFile::open).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |source| Error::environment("open", path, source);
        let file = Arc::new(File::open(path).map_err(fail)?);
        let metadata = file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            return Err(fail(std::io::ErrorKind::IsADirectory.into()));
        }
        ready_to_read(&file, path)?;
        let identity = identity(&metadata, path);
        Ok(Self { file, path: path.to_owned(), len: metadata.len(), identity })
    }

    /// What has become of it, by what stands under its name now: length, times of the last change, and
    /// number of the file.
    pub fn state(&self) -> FileState {
        match self.path.metadata() {
            Ok(metadata) if identity(&metadata, &self.path) == self.identity => FileState::Same,
            Ok(_) => FileState::Changed,
            Err(_) => FileState::Gone,
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

    /// As that of [`LocalFile`](crate::LocalFile), of the moment when it was opened.
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

    /// A map would end the test program at the last line.
    #[test]
    fn a_file_that_is_shortened_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.gguf");
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let file = ReadFile::open(&path).unwrap();
        assert_eq!((file.state(), file.byte_len()), (FileState::Same, 100_000));
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert_eq!(file.state(), FileState::Changed);
        assert!(file.as_slice().is_none());
        let error = file.read_at(&mut [0; 8], 90_000).unwrap_err();
        assert_eq!(error.code(), "environment");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.state(), FileState::Gone);
    }

    #[test]
    fn another_file_of_the_same_name_is_another() {
        let directory = tempfile::tempdir().unwrap();
        let (path, new) = (directory.path().join("m.gguf"), directory.path().join("new.gguf"));
        std::fs::write(&path, b"old").unwrap();
        let file = ReadFile::open(&path).unwrap();
        std::fs::write(&new, b"new").unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert_eq!(file.state(), FileState::Changed);
        // What was opened is still there.
        let mut bytes = [0; 3];
        file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"old");
    }
}
