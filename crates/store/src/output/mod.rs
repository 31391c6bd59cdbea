//! Files that appear under their name only when they are complete.

mod far;
mod overwrite;
mod place;
mod space;
mod unfinished;

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub use far::{FarOutput, FarPlace, Layout, Unfinished};
use gguf::Error;
pub use overwrite::{Existing, Overwrite};
pub use place::Output;
pub use space::require_space;
use tempfile::{NamedTempFile, TempPath};
pub(crate) use unfinished::{blamed, is_at};
pub use unfinished::{is_unfinished, unfinished_name};

use crate::position::write_all_at;

/// A file being written beside its target; [`AtomicFile::commit`] gives it its name.
///
/// Dropped without that, or interrupted, it leaves what was under the name before as it was.
/// Writing at positions needs no exclusive access, so many threads can fill one output.
#[derive(Debug)]
pub struct AtomicFile {
    file: NamedTempFile,
    target: PathBuf,
    existing: Existing,
}

impl AtomicFile {
    /// Starts a file that is to become `target`, in the same directory.
    ///
    /// A link is followed: what it points to is replaced, if `overwrite` lets it.
    ///
    /// # Errors
    /// As [`Overwrite::check`], and [`Error::Environment`] if the directory cannot be written.
    pub fn create(target: &Path, overwrite: &Overwrite) -> Result<Self, Error> {
        let resolved = overwrite.resolve(target)?;
        let file = unfinished::create(&resolved, first_mode(&resolved))
            .map_err(|source| Error::environment("create", target, source))?;
        unfinished::remove_abandoned(&resolved, file.as_file());
        Ok(Self { file, target: resolved, existing: overwrite.existing() })
    }

    /// Writes a file as a whole: for what is small and at hand.
    ///
    /// # Errors
    /// As [`AtomicFile::create`] and [`AtomicFile::commit`]. The target is then as it was.
    pub fn write(target: &Path, bytes: &[u8], overwrite: &Overwrite) -> Result<(), Error> {
        let output = Self::create(target, overwrite)?;
        output.write_at(bytes, 0)?;
        output.commit()
    }

    /// As [`AtomicFile::create`], but what is written before the work is interrupted can be gone on
    /// with: the unfinished file has a fixed name and stays if the process is killed.
    ///
    /// With `resume`, its content is what an earlier call left there, if there was one, and it also
    /// stays when it is dropped. Otherwise it begins empty.
    ///
    /// # Errors
    /// As [`AtomicFile::create`]; [`Error::Caller`] if another process is writing the same target so,
    /// or if the unfinished file is not one that we have made.
    pub fn resumable(target: &Path, resume: bool, overwrite: &Overwrite) -> Result<Self, Error> {
        let resolved = overwrite.resolve(target)?;
        let path = unfinished::directory(&resolved).join(unfinished_name(&resolved));
        let failed = |source| Error::environment("create", blamed(&path, target), source);
        let file = loop {
            let file = open_resumable(&path, first_mode(&resolved)).map_err(failed)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let what = format!("{} is being written by another process", target.display());
                return Err(Error::request("output-busy", what, ""));
            }
            // Between the two steps above another process may have given the file its name.
            if is_at(&file, &path) {
                break file;
            }
        };
        if !is_ours(&file).map_err(failed)? {
            let what = format!("{} is not a file of ours: remove it", path.display());
            return Err(Error::request("output-refused", what, ""));
        }
        // From here on it is gone if anything fails, unless it is to stay.
        let temporary = TempPath::try_from_path(&path).map_err(failed)?;
        let mut file = NamedTempFile::from_parts(file, temporary);
        file.disable_cleanup(resume);
        restrict(file.as_file(), first_mode(&resolved)).map_err(failed)?;
        if !resume {
            unfinished::remove_abandoned(&resolved, file.as_file());
            file.as_file().set_len(0).map_err(failed)?;
        }
        Ok(Self { file, target: resolved, existing: overwrite.existing() })
    }

    /// The file that is to appear, where it was named by a link the file behind it.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether it is the one that an output of this name would be, be the name a link or another
    /// spelling.
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
        space::set_len(self.file.as_file(), &self.target, len).map_err(|source| self.failed(source))
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

    /// Makes sure the bytes are on the disk and gives the file its name. A file that was there
    /// and may be replaced leaves it its permissions and, where we may give files away, its owner.
    ///
    /// # Errors
    /// [`Error::Environment`]; [`Error::Exists`] if meanwhile something appeared under the name
    /// that is not to be replaced. The target is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        self.close()?.commit()
    }

    /// Makes sure the bytes are on the disk and closes the file, which has no name yet: for
    /// several files that are to appear together.
    ///
    /// # Errors
    /// [`Error::Environment`].
    pub fn close(self) -> Result<Complete, Error> {
        let file = self.file.as_file();
        if self.existing == Existing::Replace
            && let Ok(old) = self.target.metadata()
        {
            inherit(file, &old).map_err(|source| self.failed(source))?;
        }
        file.sync_all().map_err(|source| self.failed(source))?;
        let Self { file, target, existing } = self;
        Ok(Complete(Named::Near { file: file.into_temp_path(), target, existing }))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::environment("write", &self.target, source)
    }
}

/// The permissions of a new file while it is written: those of any new file; if it is to replace
/// another, none for others until it has the permissions of that one.
fn first_mode(target: &Path) -> u32 {
    if target.exists() { PRIVATE } else { 0o666 }
}

/// What nobody else can read.
const PRIVATE: u32 = 0o600;

/// Opens the file of work that can be gone on with, or creates it. Never through a link.
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

/// Makes a file private that is from a time when there was nothing to replace.
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

/// Whether an unfinished file is one that we can have made: what others prepared may be another
/// name of something that is precious.
#[cfg(unix)]
fn is_ours(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata()?;
    Ok(found.is_file() && found.nlink() <= 1 && found.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn is_ours(file: &File) -> std::io::Result<bool> {
    Ok(file.metadata()?.is_file())
}

/// Gives a file the owner and the permissions of the one that it is to replace.
#[cfg(unix)]
fn inherit(file: &File, old: &std::fs::Metadata) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let new = file.metadata()?;
    // Only root may give files away; to a group that one is in, everybody may. Inside a container
    // some owners do not exist.
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
        // Another group gets no more than everybody has.
        mode &= 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn inherit(_: &File, _: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// A complete output that lacks its name. Dropped, it is gone.
#[derive(Debug)]
pub struct Complete(Named);

#[derive(Debug)]
enum Named {
    Near { file: TempPath, target: PathBuf, existing: Existing },
    Far(Box<dyn FarOutput>),
}

impl Complete {
    fn far(output: Box<dyn FarOutput>) -> Self {
        Self(Named::Far(output))
    }

    /// The name that it is to get.
    pub fn target(&self) -> &Path {
        match &self.0 {
            Named::Near { target, .. } => target,
            Named::Far(output) => output.target(),
        }
    }

    /// Gives the output its name.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`] and [`FarOutput::commit`].
    pub fn commit(self) -> Result<(), Error> {
        let (file, target, existing) = match self.0 {
            Named::Near { file, target, existing } => (file, target, existing),
            Named::Far(output) => return output.commit(),
        };
        let named = match existing {
            Existing::Replace => file.persist(&target),
            Existing::Refuse => file.persist_noclobber(&target),
        };
        match named {
            Ok(()) => sync_directory(&target),
            Err(fault)
                if existing == Existing::Refuse
                    && fault.error.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                Err(Error::Exists(target))
            }
            Err(fault) => Err(Error::environment("rename to", &target, fault.error)),
        }
    }
}

/// Gives a file another name, which nothing has.
///
/// # Errors
/// [`Error::Exists`] if something has it; [`Error::Environment`]. The file then has its old name.
pub fn rename_new(file: &Path, target: &Path) -> Result<(), Error> {
    let failed = |source| Error::environment("rename to", target, source);
    file.symlink_metadata().map_err(|source| Error::environment("rename", file, source))?;
    let mut path = TempPath::try_from_path(file).map_err(failed)?;
    // It is no temporary file: it stays whatever comes.
    path.disable_cleanup(true);
    match path.persist_noclobber(target) {
        Ok(()) => sync_directory(target),
        Err(fault) if fault.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(Error::Exists(target.to_owned()))
        }
        Err(fault) => Err(failed(fault.error)),
    }
}

/// Makes sure that the name of a file is on the disk.
pub(crate) fn sync_directory(of: &Path) -> Result<(), Error> {
    // Elsewhere directories cannot be opened as files.
    #[cfg(unix)]
    {
        let directory = unfinished::directory(of);
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::environment("sync", directory, source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
