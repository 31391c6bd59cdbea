//! Files that appear under their name only when they are complete.

use std::fs::File;
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
    /// # Errors
    /// [`Error::Environment`] if the directory cannot be written, [`Error::Caller`] if `target`
    /// is a directory.
    pub fn create(target: &Path) -> Result<Self, Error> {
        if target.is_dir() {
            return Err(Error::Caller(format!("{} is a directory", target.display())));
        }
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let mut builder = tempfile::Builder::new();
        let (prefix, suffix) = (format!(".{name}."), ".part");
        builder.prefix(&prefix).suffix(suffix);
        // As a plainly created file would have it: the process's umask takes bits away.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .tempfile_in(parent.unwrap_or(Path::new(".")))
            .map_err(|source| Error::environment("create", target, source))?;
        Ok(Self { file, target: target.to_owned() })
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

    /// Makes sure the bytes are on the disk and gives the file its name, replacing what was
    /// there.
    ///
    /// # Errors
    /// [`Error::Environment`]; the target is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        self.close()?.commit()
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
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
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
