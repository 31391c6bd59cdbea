//! Files that appear under their name only when they are complete.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::error::Error;

/// A file being written beside its target; [`Output::commit`] gives it its name.
///
/// Dropped without that, or interrupted, it leaves what was under the name before as it was.
/// Writing at positions needs no exclusive access, so many threads can fill one output.
#[derive(Debug)]
pub struct Output {
    file: NamedTempFile,
    target: PathBuf,
}

impl Output {
    /// Starts a file that is to become `target`, in the same directory.
    ///
    /// A link is followed: what it points to is replaced.
    ///
    /// # Errors
    /// [`Error::Environment`] if the directory, or a file that is there, cannot be written;
    /// [`Error::Caller`] if `target` is a directory or a device.
    pub fn create(target: &Path) -> Result<Self, Error> {
        let target = replaceable(target)?;
        let (directory, prefix) = beside(&target);
        remove_abandoned(directory, &prefix);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX);
        // As a plainly created file would have it: the process's umask takes bits away.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        loop {
            let file = builder
                .tempfile_in(directory)
                .map_err(|source| Error::environment("create", &target, source))?;
            // The lock tells others that somebody is still writing. Where there are no locks,
            // nobody can hold one, and nothing is removed.
            if file.as_file().lock().is_err() || file.path().exists() {
                return Ok(Self { file, target });
            }
            // Another writer took it for abandoned before it was locked.
        }
    }

    /// As [`Output::create`], but what is written before the work is interrupted can be gone on
    /// with: the unfinished file has a fixed name and stays if the process is killed.
    ///
    /// With `resume`, its content is what an earlier call left there, if there was one, and it also
    /// stays when it is dropped. Otherwise it begins empty.
    ///
    /// # Errors
    /// As [`Output::create`]; [`Error::Caller`] if another process is writing the same target so.
    pub fn resumable(target: &Path, resume: bool) -> Result<Self, Error> {
        let target = replaceable(target)?;
        let (directory, prefix) = beside(&target);
        if !resume {
            remove_abandoned(directory, &prefix);
        }
        let path = directory.join(format!("{prefix}unfinished{SUFFIX}"));
        let failed = |source| Error::environment("create", &path, source);
        let file = loop {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(failed)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let message = format!("{} is being written by another process", target.display());
                return Err(Error::Caller(message));
            }
            // Between the two steps above another process may have given the file its name.
            if is_at(&file, &path) {
                break file;
            }
        };
        if !resume {
            file.set_len(0).map_err(failed)?;
        }
        let path = TempPath::try_from_path(&path).map_err(failed)?;
        let mut file = NamedTempFile::from_parts(file, path);
        file.disable_cleanup(resume);
        Ok(Self { file, target })
    }

    /// Bytes that are in the file now.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn byte_len(&self) -> Result<u64, Error> {
        let metadata = self.file.as_file().metadata();
        Ok(metadata.map_err(|source| self.failed(source))?.len())
    }

    /// Reads from `offset` on, to the end of the file at most, and returns how many bytes there
    /// were.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn read_at(&self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        let mut file = self.file.as_file();
        let mut filled = 0;
        file.seek(SeekFrom::Start(offset)).map_err(|source| self.failed(source))?;
        while filled < out.len() {
            match file.read(&mut out[filled..]).map_err(|source| self.failed(source))? {
                0 => break,
                n => filled += n,
            }
        }
        Ok(filled)
    }

    /// Makes sure that the bytes written so far are on the disk.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn sync(&self) -> Result<(), Error> {
        self.file.as_file().sync_data().map_err(|source| self.failed(source))
    }

    /// Sets the length; new bytes are zero. Reserves the space where the system can, so that a
    /// full disk is noticed now and not hours later.
    ///
    /// # Errors
    /// [`Error::Environment`], on a full disk among others.
    pub fn set_len(&self, len: u64) -> Result<(), Error> {
        self.file.as_file().set_len(len).map_err(|source| self.failed(source))
    }

    /// Writes `bytes` at `offset` from the start.
    ///
    /// # Errors
    /// [`Error::Environment`], on a full disk among others.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file.as_file(), bytes, offset).map_err(|source| self.failed(source))
    }

    /// Copies a part of a file to `offset`, and returns its length: by the operating system, which
    /// shares the blocks instead of copying them where the file system can.
    ///
    /// # Errors
    /// [`Error::Environment`] if one cannot be read or the other not be written.
    pub(crate) fn append_from(
        &self,
        source: &mut std::io::Take<&File>,
        offset: u64,
    ) -> Result<u64, Error> {
        let mut file = self.file.as_file();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| std::io::copy(source, &mut file))
            .map_err(|source| self.failed(source))
    }

    /// Makes sure the bytes are on the disk and gives the file its name, replacing what was
    /// there.
    ///
    /// # Errors
    /// [`Error::Environment`]; the target is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        let target = self.target.clone();
        self.close()?.commit()?;
        sync_directory(&target)
    }

    /// Makes sure the bytes are on the disk and closes the file, which has no name yet: for
    /// several files that are to appear together.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub(crate) fn close(self) -> Result<Complete, Error> {
        self.file.as_file().sync_data().map_err(|source| self.failed(source))?;
        Ok(Complete { file: self.file.into_temp_path(), target: self.target })
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::environment("write", &self.target, source)
    }
}

/// What every unfinished file ends with.
const SUFFIX: &str = ".part";

/// The file to write for a target that may be a link, if it can be written.
fn replaceable(target: &Path) -> Result<PathBuf, Error> {
    let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
    if let Ok(existing) = target.metadata() {
        if !existing.is_file() {
            return Err(Error::Caller(format!("{} is no regular file", target.display())));
        }
        // A rename would get around what the permission says.
        if existing.permissions().readonly() {
            let denied = std::io::ErrorKind::PermissionDenied.into();
            return Err(Error::environment("replace", &target, denied));
        }
    }
    Ok(target)
}

/// Where the unfinished files of a target are, and what their names begin with.
fn beside(target: &Path) -> (&Path, String) {
    let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    (parent.unwrap_or(Path::new(".")), format!(".{name}."))
}

/// Removes what writers of the same target left behind when they were killed: the files that
/// nobody holds the lock of any more. Failing to is no fault of the file to be written.
fn remove_abandoned(directory: &Path, prefix: &str) {
    let Ok(entries) = directory.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix)
            && name.ends_with(SUFFIX)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether an open file is the one that is at this path now.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata(), path.metadata()), (Ok(a), Ok(b)) if id(&a) == id(&b))
}

/// Whether an open file is the one that is at this path now: an open file keeps its name here.
#[cfg(not(unix))]
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// A complete file that lacks its name. Dropped, it is gone.
pub(crate) struct Complete {
    file: TempPath,
    target: PathBuf,
}

impl Complete {
    /// Gives the file its name, replacing what was there.
    pub fn commit(self) -> Result<(), Error> {
        self.file
            .persist(&self.target)
            .map_err(|fault| Error::environment("rename to", &self.target, fault.error))
    }
}

/// Makes sure that the name of a file is on the disk.
pub(crate) fn sync_directory(of: &Path) -> Result<(), Error> {
    // Elsewhere directories cannot be opened as files.
    #[cfg(unix)]
    {
        let parent = of.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::environment("sync", parent, source))?;
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if n == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[n..];
        offset += n as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_appears_with_the_last_step() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.gguf");
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        std::fs::write(&target, b"old").unwrap();
        let output = Output::create(&target).unwrap();
        output.set_len(4).unwrap();
        output.write_at(b"w", 3).unwrap();
        drop(output);
        assert_eq!((std::fs::read(&target).unwrap(), names()), (b"old".to_vec(), 1));

        let output = Output::create(&target).unwrap();
        output.set_len(4).unwrap();
        output.write_at(b"w", 3).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        output.commit().unwrap();
        assert_eq!((std::fs::read(&target).unwrap(), names()), (b"\0\0\0w".to_vec(), 1));
    }

    #[test]
    fn what_killed_writers_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.gguf");
        let abandoned = dir.path().join(".a.gguf.x1.part");
        let of_another = dir.path().join(".b.gguf.x1.part");
        std::fs::write(&abandoned, b"half").unwrap();
        std::fs::write(&of_another, b"half").unwrap();
        let (first, second) = (Output::create(&target).unwrap(), Output::create(&target).unwrap());
        assert!(!abandoned.exists() && of_another.exists());
        first.write_at(b"1", 0).unwrap();
        second.write_at(b"2", 0).unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"2");
    }

    #[test]
    fn unfinished_work_can_be_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.gguf");
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        let first = Output::resumable(&target, true).unwrap();
        first.write_at(b"half", 0).unwrap();
        assert!(matches!(Output::resumable(&target, true), Err(Error::Caller(_))));
        drop(first);

        let second = Output::resumable(&target, true).unwrap();
        let mut found = [0; 8];
        assert_eq!((second.byte_len().unwrap(), second.read_at(&mut found, 2).unwrap()), (4, 2));
        assert_eq!(&found[..2], b"lf");
        second.write_at(b"whole", 0).unwrap();
        second.commit().unwrap();
        assert_eq!((std::fs::read(&target).unwrap(), names()), (b"whole".to_vec(), 1));

        drop(Output::resumable(&target, true).unwrap());
        assert_eq!(names(), 2);
        let anew = Output::resumable(&target, false).unwrap();
        assert_eq!(anew.byte_len().unwrap(), 0);
        drop(anew);
        assert_eq!(names(), 1);
    }

    #[test]
    fn only_writable_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Output::create(dir.path()), Err(Error::Caller(_))));
        let target = dir.path().join("a.gguf");
        std::fs::write(&target, b"old").unwrap();
        let mut permissions = target.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&target, permissions).unwrap();
        assert!(matches!(Output::create(&target), Err(Error::Environment { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_devices_left_alone() {
        assert!(matches!(Output::create(Path::new("/dev/null")), Err(Error::Caller(_))));
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("a.gguf"), dir.path().join("b.gguf"));
        std::fs::write(&target, b"old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        Output::create(&link).unwrap().commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
    }
}
