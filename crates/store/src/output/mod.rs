//! Atomic outputs: files that appear under their name only when they are complete.

mod device_names;
mod overwrite;
mod remote;
mod space;
mod target;
mod unfinished;

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use gguf::Error;
pub use overwrite::{Existing, Overwrite};
pub use remote::{OutputLayout, RemoteOutput, RemoteStore, ResumeOptions};
pub use space::require_space;
pub use target::Output;
use tempfile::{NamedTempFile, TempPath};
pub(crate) use unfinished::conflicting_path;
pub use unfinished::{is_unfinished, unfinished_name};

use crate::file_id::FileId;
use crate::paths::verbatim;
use crate::position::write_all_at;

/// A file that is written beside its target; [`AtomicFile::commit`] renames it.
///
/// If it is dropped or interrupted before that, the target is unchanged. Writes at positions need
/// no exclusive access, so many threads can fill one output.
#[derive(Debug)]
pub struct AtomicFile {
    file: NamedTempFile,
    target: PathBuf,
    existing: Existing,
}

impl AtomicFile {
    /// Creates an unfinished file in the directory of `target`.
    ///
    /// If `target` is a link, the file behind it is replaced, if `overwrite` allows that.
    ///
    /// # Errors
    /// As [`Overwrite::check`], and [`Error::Environment`] if the directory is not writable.
    pub fn create(target: &Path, overwrite: &Overwrite) -> Result<Self, Error> {
        let resolved = overwrite.resolve(target)?;
        let file = unfinished::create(&resolved, initial_mode(&resolved))
            .map_err(|source| Error::environment("create", target, source))?;
        unfinished::remove_abandoned(&resolved, file.as_file());
        Ok(Self { file, target: resolved, existing: overwrite.existing() })
    }

    /// Writes a small file at once.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::commit`]. The target is then unchanged.
    pub fn write(target: &Path, bytes: &[u8], overwrite: &Overwrite) -> Result<(), Error> {
        let output = Self::create(target, overwrite)?;
        output.write_at(bytes, 0)?;
        output.commit()
    }

    /// Like [`AtomicFile::create`], but an interrupted write can be resumed: the unfinished file
    /// has a fixed name and stays if the process is killed.
    ///
    /// With `resume`, the file keeps the content of an earlier call, and stays when it is dropped.
    /// Without `resume`, the file begins empty.
    ///
    /// # Errors
    /// As [`AtomicFile::create`]; [`Error::Caller`] if another process is writing the same target
    /// with this method, or if the unfinished file was not created by gguf-kit.
    pub fn resumable(target: &Path, resume: bool, overwrite: &Overwrite) -> Result<Self, Error> {
        let resolved = overwrite.resolve(target)?;
        let path = verbatim(unfinished::directory(&resolved)).join(unfinished_name(&resolved));
        let failed = |source| Error::environment("create", conflicting_path(&path, target), source);
        let file = loop {
            let file = open_resumable(&path, initial_mode(&resolved)).map_err(failed)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let what = format!("{} is being written by another process", target.display());
                return Err(Error::request("output-busy", what, ""));
            }
            // Another process may have renamed the file between opening and locking.
            if FileId::is_at(&file, &path) {
                break file;
            }
        };
        if !is_own_file(&file).map_err(failed)? {
            let what = format!("{} was not created by gguf-kit: remove it", path.display());
            return Err(Error::request("output-refused", what, ""));
        }
        // From here on the file is removed if anything fails, unless `resume` keeps it.
        let temporary = TempPath::try_from_path(&path).map_err(failed)?;
        let mut file = NamedTempFile::from_parts(file, temporary);
        file.disable_cleanup(resume);
        restrict(file.as_file(), initial_mode(&resolved)).map_err(failed)?;
        if !resume {
            unfinished::remove_abandoned(&resolved, file.as_file());
            file.as_file().set_len(0).map_err(failed)?;
        }
        Ok(Self { file, target: resolved, existing: overwrite.existing() })
    }

    /// Returns the target path, with a link resolved.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether an output to `target` would be this file, under any spelling or link.
    pub fn is_for(&self, target: &Path) -> bool {
        let place = |path: &Path| {
            let resolved = path.canonicalize();
            resolved.or_else(|_| {
                unfinished::directory(path)
                    .canonicalize()
                    .map(|directory| directory.join(path.file_name().unwrap_or_default()))
            })
        };
        matches!((place(&self.target), place(target)), (Ok(a), Ok(b)) if a == b)
    }

    /// Returns the present length of the file.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn byte_len(&self) -> Result<u64, Error> {
        let metadata = self.file.as_file().metadata();
        Ok(metadata.map_err(|source| self.failed(source))?.len())
    }

    /// Reads from `offset` up to the end of the file and returns the number of bytes read.
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

    /// Flushes the bytes written so far to disk.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn sync(&self) -> Result<(), Error> {
        self.file.as_file().sync_data().map_err(|source| self.failed(source))
    }

    /// Sets the length; new bytes are zero. Reserves the space where the system can, so that a full
    /// disk is detected before the work and not during it.
    ///
    /// # Errors
    /// [`Error::Environment`], for example on a full disk.
    pub fn set_len(&self, len: u64) -> Result<(), Error> {
        space::set_len(self.file.as_file(), &self.target, len).map_err(|source| self.failed(source))
    }

    /// Writes `bytes` at `offset` from the start.
    ///
    /// # Errors
    /// [`Error::Environment`], for example on a full disk.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file.as_file(), bytes, offset).map_err(|source| self.failed(source))
    }

    /// Copies a part of a file to `offset` and returns its length. The operating system copies and
    /// shares blocks where the file system can.
    ///
    /// # Errors
    /// [`Error::Environment`] if the source cannot be read or the output not be written.
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

    /// Flushes the bytes to disk and renames the file. A file that is replaced passes on its
    /// permissions and, where possible, its owner.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Exists`] if a file that must not be replaced has appeared
    /// meanwhile. The target is then unchanged.
    pub fn commit(self) -> Result<(), Error> {
        self.close()?.commit()
    }

    /// Flushes the bytes to disk and closes the file without renaming it, so that several files can
    /// appear together.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn close(self) -> Result<ClosedOutput, Error> {
        let file = self.file.as_file();
        if self.existing == Existing::Replace
            && let Ok(old) = self.target.metadata()
        {
            inherit(file, &old).map_err(|source| self.failed(source))?;
        }
        file.sync_all().map_err(|source| self.failed(source))?;
        let Self { file, target, existing } = self;
        Ok(ClosedOutput(Closed::Local { file: file.into_temp_path(), target, existing }))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::environment("write", &self.target, source)
    }
}

/// Returns the permissions of an unfinished file: the default ones, or private until it takes over
/// those of the file it replaces.
fn initial_mode(target: &Path) -> u32 {
    if target.exists() { PRIVATE } else { 0o666 }
}

/// Permissions that exclude other users.
const PRIVATE: u32 = 0o600;

/// Opens or creates the unfinished file of a resumable write. Does not follow a link.
fn open_resumable(path: &Path, mode: u32) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(mode).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Makes an unfinished file private if it was created when there was nothing to replace.
fn restrict(file: &File, mode: u32) -> std::io::Result<()> {
    #[cfg(unix)]
    if mode == PRIVATE {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = (file, mode);
    Ok(())
}

/// Whether gguf-kit can have created an unfinished file: a file prepared by someone else may be a
/// hard link to a precious file.
#[cfg(unix)]
fn is_own_file(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata()?;
    Ok(found.is_file() && found.nlink() <= 1 && found.uid() == rustix::process::geteuid().as_raw())
}

/// Whether gguf-kit can have created an unfinished file: a file prepared by someone else may be a
/// hard link to a precious file.
#[cfg(windows)]
fn is_own_file(file: &File) -> std::io::Result<bool> {
    let links = winapi_util::file::information(file)?.number_of_links();
    Ok(file.metadata()?.is_file() && links <= 1)
}

/// Copies owner and permissions of the file that is to be replaced.
#[cfg(unix)]
fn inherit(file: &File, old: &std::fs::Metadata) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    // Only root may change the owner; any user may change the group to one of their own. In a
    // container some owners do not exist.
    let allowed = |given: std::io::Result<()>| match given {
        Ok(()) => Ok(true),
        Err(fault) if matches!(fault.kind(), PermissionDenied | InvalidInput) => Ok(false),
        Err(fault) => Err(fault),
    };
    let mut mode = old.mode() & 0o777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && !allowed(fchown(file, Some(old.uid()), Some(old.gid())))?
        && new.gid() != old.gid()
        && !allowed(fchown(file, None, Some(old.gid())))?
    {
        // A different group gets no more permissions than others have.
        mode &= 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn inherit(_: &File, _: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// A complete output that has not been renamed. Dropping it removes it.
#[derive(Debug)]
pub struct ClosedOutput(Closed);

#[derive(Debug)]
enum Closed {
    Local { file: TempPath, target: PathBuf, existing: Existing },
    Remote(Box<dyn RemoteOutput>),
}

impl ClosedOutput {
    fn remote(output: Box<dyn RemoteOutput>) -> Self {
        Self(Closed::Remote(output))
    }

    /// Returns the target path or URL.
    pub fn target(&self) -> &Path {
        match &self.0 {
            Closed::Local { target, .. } => target,
            Closed::Remote(output) => output.target(),
        }
    }

    /// Makes the output visible under its name.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`] and [`RemoteOutput::commit`].
    pub fn commit(self) -> Result<(), Error> {
        let (file, target, existing) = match self.0 {
            Closed::Local { file, target, existing } => (file, target, existing),
            Closed::Remote(output) => return output.commit(),
        };
        let failed = |fault| Error::environment("rename to", &target, fault);
        match existing {
            Existing::Replace => replace(file, &target).map_err(failed)?,
            Existing::Refuse => match file.persist_noclobber(verbatim(&target)) {
                Ok(()) => {}
                Err(fault) if fault.error.kind() == std::io::ErrorKind::AlreadyExists => {
                    return Err(Error::Exists(target));
                }
                Err(fault) => return Err(failed(fault.error)),
            },
        }
        sync_directory(&target)
    }
}

/// Renames a file over another one, if there is one. Windows replaces no file that is mapped, and
/// older versions no file that is open.
fn replace(mut file: TempPath, target: &Path) -> std::io::Result<()> {
    std::fs::rename(&file, target).map_err(|fault| match cfg!(windows) && target.exists() {
        true => explain_open_file(fault),
        false => fault,
    })?;
    // The name is free for another file.
    file.disable_cleanup(true);
    Ok(())
}

/// Names the cause of a refusal of Windows: the target was writable, so access is denied because a
/// program has it open.
fn explain_open_file(fault: std::io::Error) -> std::io::Error {
    const SHARING_VIOLATION: i32 = 32;
    match fault.kind() {
        std::io::ErrorKind::PermissionDenied => {
            std::io::Error::from_raw_os_error(SHARING_VIOLATION)
        }
        _ => fault,
    }
}

/// Renames a file to a name that does not exist yet.
///
/// # Errors
/// [`Error::Exists`] if the name exists; [`Error::Environment`]. The file then keeps its old name.
pub fn rename_new(file: &Path, target: &Path) -> Result<(), Error> {
    let failed = |source| Error::environment("rename to", target, source);
    file.symlink_metadata().map_err(|source| Error::environment("rename", file, source))?;
    let mut path = TempPath::try_from_path(verbatim(file)).map_err(failed)?;
    // The file is not temporary: do not delete it on errors.
    path.disable_cleanup(true);
    match path.persist_noclobber(verbatim(target)) {
        Ok(()) => sync_directory(target),
        Err(fault) if fault.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::Exists(target.to_owned()))
        }
        Err(fault) => Err(failed(fault.error)),
    }
}

/// Flushes the directory entry of a file to disk.
pub(crate) fn sync_directory(of: &Path) -> Result<(), Error> {
    let directory = unfinished::directory(of);
    // Other systems cannot open directories as files.
    if cfg!(unix) {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::environment("sync", directory, source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
