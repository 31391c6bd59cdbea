//! Identity of a file, which is the same under all its names.

use std::fs::File;
use std::io;
use std::path::Path;

/// Number of the file system or volume, and number of the file in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) file: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    #[cfg(unix)]
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Returns the identity of the file or directory at `path`, behind a link.
    #[cfg(unix)]
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Whether an open file is still the one with this name, which is not a link.
    #[cfg(unix)]
    pub(crate) fn is_at(file: &File, path: &Path) -> bool {
        let named = path.symlink_metadata().map(|metadata| Self::from(&metadata));
        matches!((Self::of(file), named), (Ok(a), Ok(b)) if a == b)
    }

    /// Returns the identity of an open file.
    #[cfg(windows)]
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let found = winapi_util::file::information(file)?;
        Ok(Self { device: found.volume_serial_number(), file: found.file_index() })
    }

    /// Returns the identity of the file or directory at `path`, behind a link.
    #[cfg(windows)]
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Self::of(winapi_util::Handle::from_path_any(path)?.as_file())
    }

    /// Whether an open file is still the one with this name: the name of a deleted file can be that
    /// of a new one while the deleted one is still open.
    #[cfg(windows)]
    pub(crate) fn is_at(file: &File, path: &Path) -> bool {
        matches!((Self::of(file), Self::at(path)), (Ok(a), Ok(b)) if a == b)
    }
}

/// Whether two paths lead to one file, which may have several names; `false` if one of them leads nowhere.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((FileId::at(a), FileId::at(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(unix)]
impl From<&std::fs::Metadata> for FileId {
    fn from(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), file: metadata.ino() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_one_identity_under_all_names() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
        std::fs::write(&a, b"file").unwrap();
        std::fs::hard_link(&a, &b).unwrap();
        let file = File::open(&a).unwrap();
        assert!(FileId::is_at(&file, &a) && FileId::is_at(&file, &b));
        assert_eq!(FileId::at(&b).unwrap(), FileId::of(&file).unwrap());
        assert!(is_same_file(&a, &b) && !is_same_file(&a, dir.path()) && !is_same_file(&c, &c));
        assert_eq!(FileId::at(dir.path()).unwrap().device, FileId::of(&file).unwrap().device);
        std::fs::rename(&a, &c).unwrap();
        std::fs::write(&a, b"file").unwrap();
        assert!(FileId::is_at(&file, &c) && !FileId::is_at(&file, &a));
        assert!(!FileId::is_at(&file, &dir.path().join("d")));
    }
}
