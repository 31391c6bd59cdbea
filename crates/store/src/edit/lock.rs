//! File locking: two locks that serialize changes of a model.
//!
//! *Editors* exclude each other with a lock on an empty file beside the model, `.NAME.lock`. An
//! editor holds it from before it reads the header until it has written the last byte. The lock
//! cannot be on the model itself: a rebuild renames a new file over the model and may take minutes,
//! during which readers must be able to open it.
//!
//! *Readers* hold a shared lock on the model itself while they have it open; an editor takes the
//! exclusive lock to overwrite the header in place. So no reader sees a partial header, and no map
//! changes under a reader. If the exclusive lock is not available, because the file is being read
//! or because the file system has no locks, the editor rebuilds the model instead.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::Error;

use crate::file_id::FileId;
use crate::output::conflicting_path;
use crate::paths::resolve;

/// Time that an editor waits for another editor, and a reader for an in-place edit.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that an editor waits for readers before it rebuilds.
const READER_TIMEOUT: Duration = Duration::from_secs(1);

/// Exclusive right to edit a model.
///
/// [`edit_header`](super::edit_header) and [`recover`](super::recover()) take the lock themselves:
/// calling them while holding it fails. A caller that replaces a file with something computed from
/// it takes the lock before it reads the file and holds it until the new file has been renamed.
#[derive(Debug)]
pub struct EditLock {
    file: File,
    /// Path of the lock file.
    at: PathBuf,
    /// Path of the model as given by the caller.
    name: PathBuf,
    /// Path of the model with links resolved.
    model: PathBuf,
}

impl EditLock {
    /// Takes the lock of the file at `path`, which may be a link, and waits up to 10 seconds for
    /// another editor. Dropping the lock releases it.
    ///
    /// # Errors
    /// [`Error::Environment`] if the file is missing, read-only or not writable, if another process
    /// is still editing it, or if the file system has no locks; [`Error::Caller`] if it is not a
    /// regular file, or is named by its digest.
    pub fn take(path: &Path) -> Result<Self, Error> {
        Self::take_to_restore(path, None)
    }

    /// Takes the lock as [`EditLock::take`] does, also of a file that is named by its digest, if the caller gives the file
    /// the content with that digest, `sha256` in hexadecimal digits.
    ///
    /// # Errors
    /// As [`EditLock::take`].
    pub fn take_to_restore(path: &Path, sha256: Option<&str>) -> Result<Self, Error> {
        let model = writable(path)?;
        refuse_stored(&model, path, sha256)?;
        let at = hidden(&model, ".lock");
        match retry(LOCK_TIMEOUT, || try_take(&at).transpose()) {
            Some(Ok(file)) => Ok(Self { file, at, name: path.to_owned(), model }),
            Some(Err(source)) => {
                Err(Error::environment("lock", conflicting_path(&at, path), source))
            }
            None => Err(busy("edit", path)),
        }
    }

    /// Opens the model for reading and writing, and excludes all readers until the file is closed. `action` names the work
    /// in an error.
    ///
    /// # Errors
    /// [`Error::Environment`] if another process has the model open, or if the file system has no locks.
    pub fn open_exclusive(&self, action: &'static str) -> Result<File, Error> {
        let fail = |source| self.failed(action, source);
        let file = OpenOptions::new().read(true).write(true).open(&self.model).map_err(fail)?;
        if !exclude_readers(&file) {
            let reason = "another process has it open, or the file system has no file locking";
            return Err(fail(IoError::new(ErrorKind::WouldBlock, reason)));
        }
        Ok(file)
    }

    /// Path of the model with links resolved.
    pub(super) fn model(&self) -> &Path {
        &self.model
    }

    /// Builds an error about the model under the path that the caller gave.
    pub(super) fn failed(&self, action: &'static str, source: IoError) -> Error {
        Error::environment(action, &self.name, source)
    }
}

/// Refuses a file that is named by a digest other than `sha256`: the stores of `huggingface_hub` and Ollama share it between
/// models.
fn refuse_stored(model: &Path, path: &Path, sha256: Option<&str>) -> Result<(), Error> {
    let name = model.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digest = name.strip_prefix("sha256-").unwrap_or(name);
    if digest.len() != 64
        || !digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        || sha256.is_some_and(|sha256| digest.eq_ignore_ascii_case(sha256))
    {
        return Ok(());
    }
    let what = format!("{} is in a store that names files by their digest", path.display());
    Err(Error::request("edit-refused", what, "write an edited copy with -o"))
}

impl Drop for EditLock {
    fn drop(&mut self) {
        // Remove before unlocking: an editor that waits for the lock then sees that the name is
        // gone.
        if FileId::is_at(&self.file, &self.at) {
            let _ = std::fs::remove_file(&self.at);
        }
    }
}

/// Resolves `path` and checks that the file is regular and writable.
fn writable(path: &Path) -> Result<PathBuf, Error> {
    let fail = |action| move |source| Error::environment(action, path, source);
    let model = resolve(path).map_err(fail("open"))?;
    let metadata = model.metadata().map_err(fail("open"))?;
    if !metadata.is_file() {
        return Err(Error::request(
            "not-a-file",
            format!("{} is not a regular file", path.display()),
            "",
        ));
    }
    // Rename and the superuser would both bypass the read-only permission.
    if metadata.permissions().readonly() {
        let denied = IoError::new(ErrorKind::PermissionDenied, "the file is read-only");
        return Err(fail("edit")(denied));
    }
    OpenOptions::new().write(true).open(&model).map_err(fail("edit"))?;
    Ok(model)
}

/// Creates and locks the lock file; `None` while another process holds it.
fn try_take(at: &Path) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let (file, created) = match options.clone().create_new(true).open(at) {
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => match existing(&options, at) {
            Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
            Err(fault) if is_being_deleted(&fault, at) => return Ok(None),
            file => (file?, false),
        },
        Err(fault) if is_being_deleted(&fault, at) => return Ok(None),
        file => (file?, true),
    };
    match file.try_lock() {
        // The previous holder may have removed the file meanwhile.
        Ok(()) => Ok(FileId::is_at(&file, at).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(fault)) => {
            if created {
                let _ = std::fs::remove_file(at);
            }
            Err(fault)
        }
    }
}

/// Whether a file cannot be opened because another process is deleting it: on Windows, the name stays
/// until the last process has closed the file, and access is denied meanwhile.
fn is_being_deleted(fault: &IoError, at: &Path) -> bool {
    cfg!(windows)
        && fault.kind() == ErrorKind::PermissionDenied
        && at.parent().is_some_and(|parent| tempfile::tempfile_in(parent).is_ok())
}

/// Opens an existing lock file, of another editor or left by a killed one.
fn existing(options: &OpenOptions, at: &Path) -> std::io::Result<File> {
    let metadata = at.symlink_metadata()?;
    // Follow no link, and treat no file with content as a lock file: it will be removed.
    if !metadata.is_file() || metadata.len() > 0 {
        return Err(IoError::new(ErrorKind::AlreadyExists, "another file is in the way"));
    }
    options.open(at)
}

/// Locks an open file against in-place edits until it is closed. Waits while the header is being
/// overwritten.
///
/// # Errors
/// [`Error::Environment`] if the exclusive lock is held for too long. A file system without locks
/// is not an error: headers are not overwritten in place there.
pub(crate) fn share(file: &File, path: &Path) -> Result<(), Error> {
    retry(LOCK_TIMEOUT, || match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => None,
        Ok(()) | Err(TryLockError::Error(_)) => Some(()),
    })
    .ok_or_else(|| busy("read", path))
}

/// Tries to lock an open file against all readers until it is closed; returns whether it succeeded.
pub(super) fn exclude_readers(file: &File) -> bool {
    retry(READER_TIMEOUT, || match file.try_lock() {
        Err(TryLockError::WouldBlock) => None,
        Ok(()) => Some(true),
        Err(TryLockError::Error(_)) => Some(false),
    })
    .unwrap_or(false)
}

fn busy(action: &'static str, path: &Path) -> Error {
    let reason = "another process is changing it; try again later";
    Error::environment(action, path, IoError::new(ErrorKind::WouldBlock, reason))
}

/// Retries `attempt` until it returns a value or `timeout` has passed.
fn retry<T>(timeout: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        let outcome = attempt();
        if outcome.is_some() || start.elapsed() >= timeout {
            return outcome;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Returns the path of a hidden file beside the model at `path`, which must not be a link.
pub(super) fn hidden(path: &Path, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"model").unwrap();
        let lock = EditLock::take(&model).unwrap();
        let at = hidden(&model.canonicalize().unwrap(), ".lock");
        assert!(try_take(&at).unwrap().is_none());
        // A rebuild renames another file over the model: the lock is still held.
        std::fs::write(dir.path().join("new"), b"new").unwrap();
        std::fs::rename(dir.path().join("new"), &model).unwrap();
        assert!(try_take(&at).unwrap().is_none());
        drop(lock);
        assert!(!at.exists());
        // The lock file of a killed editor does not block.
        std::fs::write(&at, b"").unwrap();
        drop(EditLock::take(&model).unwrap());
        assert!(!at.exists());
    }

    #[test]
    fn waiting_editors_get_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (model, count) = (dir.path().join("m.gguf"), dir.path().join("count"));
        std::fs::write(&model, b"model").unwrap();
        std::fs::write(&count, b"0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _lock = EditLock::take(&model).unwrap();
                        let n: u32 = std::fs::read_to_string(&count).unwrap().parse().unwrap();
                        std::fs::write(&count, (n + 1).to_string()).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read(&count).unwrap(), b"100");
    }

    #[test]
    fn files_in_place_of_the_lock_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"model").unwrap();
        let at = hidden(&model, ".lock");
        std::fs::write(&at, b"a user's own").unwrap();
        let error = EditLock::take(&model).unwrap_err().to_string();
        assert!(error.contains("another file is in the way"), "{error}");
        assert_eq!(std::fs::read(&at).unwrap(), b"a user's own");
    }

    #[test]
    fn read_only_models_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        assert!(matches!(EditLock::take(&model), Err(Error::Environment { action: "open", .. })));
        assert!(matches!(EditLock::take(dir.path()), Err(Error::Caller(_))));
        std::fs::write(&model, b"model").unwrap();
        let mut permissions = model.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&model, permissions).unwrap();
        let error = EditLock::take(&model).unwrap_err().to_string();
        assert_eq!(error, format!("cannot edit {}: the file is read-only", model.display()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn readers_and_in_place_edits_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"model").unwrap();
        let [reader, other, writer] = [(); 3].map(|()| File::open(&model).unwrap());
        share(&reader, &model).unwrap();
        share(&other, &model).unwrap();
        assert!(!exclude_readers(&writer));
        drop((reader, other));
        assert!(exclude_readers(&writer));
    }
}
