//! Who may change a model, and when: two locks.
//!
//! *Editors* exclude each other by the lock on an empty file beside the model, `.NAME.lock`, which
//! they hold from before they read the header that they plan from until the last byte is written. The
//! model itself cannot bear this lock: a rebuild renames a new file over it, and may take minutes
//! in which readers must be let in.
//!
//! *Readers* hold a shared lock on the model itself as long as they have it open; whoever
//! overwrites its header in place holds the exclusive one. So no reader sees half a header, and
//! none has its map changed under it. Where the exclusive lock cannot be had, because somebody
//! reads or because the file system has no locks, the model is rebuilt instead.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::Error;

use crate::output::{blamed, is_at};

/// How long an editor waits for another one, and a reader for a header that is being overwritten.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an editor waits for readers before it rebuilds.
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(1);

/// The right to change a model from its own content, held by one editor at a time.
///
/// [`edit_header`](super::edit_header) and [`recover`](super::recover()) take it themselves: who
/// holds it must not call them.
/// Whoever replaces a file by something that is computed from it takes it before the file is read,
/// and keeps it until the new one has its name.
#[derive(Debug)]
pub struct EditLock {
    file: File,
    /// Where that file is.
    at: PathBuf,
    /// The model as the caller named it.
    name: PathBuf,
    /// The same, links resolved.
    model: PathBuf,
}

impl EditLock {
    /// Takes the lock of the file at `path`, which may be a link; waits some seconds for another
    /// editor to finish. Dropped, the lock is free.
    ///
    /// # Errors
    /// [`Error::Environment`] if the file is not there, is read-only or may not be written, if
    /// another process is still changing it, or if the file system has no locks;
    /// [`Error::Caller`] if it is no regular file.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let model = writable(path)?;
        let at = hidden(&model, ".lock");
        match patiently(PATIENCE, || try_take(&at).transpose()) {
            Some(Ok(file)) => Ok(Self { file, at, name: path.to_owned(), model }),
            Some(Err(source)) => Err(Error::environment("lock", blamed(&at, path), source)),
            None => Err(busy("edit", path)),
        }
    }

    /// The model, links resolved: what is opened.
    pub(super) fn model(&self) -> &Path {
        &self.model
    }

    /// An error about the model, as the caller named it.
    pub(super) fn failed(&self, action: &'static str, source: IoError) -> Error {
        Error::environment(action, &self.name, source)
    }
}

impl Drop for EditLock {
    fn drop(&mut self) {
        // Removed before it is unlocked: who was waiting for it sees that it has lost its name.
        if is_at(&self.file, &self.at) {
            let _ = std::fs::remove_file(&self.at);
        }
    }
}

/// The file that `path` leads to, if its content may be changed.
fn writable(path: &Path) -> Result<PathBuf, Error> {
    let fail = |action| move |source| Error::environment(action, path, source);
    let model = path.canonicalize().map_err(fail("open"))?;
    let metadata = model.metadata().map_err(fail("open"))?;
    if !metadata.is_file() {
        return Err(Error::request(
            "not-a-file",
            format!("{} is no regular file", path.display()),
            "",
        ));
    }
    // Neither a rename nor the superuser gets around what the permission says.
    if metadata.permissions().readonly() {
        let denied = IoError::new(ErrorKind::PermissionDenied, "the file is read-only");
        return Err(fail("edit")(denied));
    }
    OpenOptions::new().write(true).open(&model).map_err(fail("edit"))?;
    Ok(model)
}

/// The lock file, locked; `None` as long as another process has it.
fn try_take(at: &Path) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let (file, created) = match options.clone().create_new(true).open(at) {
        Err(fault) if fault.kind() == ErrorKind::AlreadyExists => match existing(&options, at) {
            Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(None),
            file => (file?, false),
        },
        file => (file?, true),
    };
    match file.try_lock() {
        // Whoever had it may have removed it meanwhile.
        Ok(()) => Ok(is_at(&file, at).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(fault)) => {
            if created {
                let _ = std::fs::remove_file(at);
            }
            Err(fault)
        }
    }
}

/// Opens a lock file that is there already: of another editor, or left by one that was killed.
fn existing(options: &OpenOptions, at: &Path) -> std::io::Result<File> {
    let metadata = at.symlink_metadata()?;
    // No link is followed, and nothing with content is taken for ours: in the end it is removed.
    if !metadata.is_file() || metadata.len() > 0 {
        return Err(IoError::new(ErrorKind::AlreadyExists, "another file is in the way"));
    }
    options.open(at)
}

/// Keeps those away who would overwrite the header of an open file, until it is closed. Waits while
/// one is being overwritten.
///
/// # Errors
/// [`Error::Environment`] if somebody holds on to the file for too long. A file system without
/// locks is no reason not to read: there, nobody overwrites headers.
pub(crate) fn share(file: &File, path: &Path) -> Result<(), Error> {
    patiently(PATIENCE, || match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => None,
        Ok(()) | Err(TryLockError::Error(_)) => Some(()),
    })
    .ok_or_else(|| busy("read", path))
}

/// Whether an open file is now locked against all readers, until it is closed.
pub(super) fn exclude_readers(file: &File) -> bool {
    patiently(PATIENCE_WITH_READERS, || match file.try_lock() {
        Err(TryLockError::WouldBlock) => None,
        Ok(()) => Some(true),
        Err(TryLockError::Error(_)) => Some(false),
    })
    .unwrap_or(false)
}

fn busy(action: &'static str, path: &Path) -> Error {
    let reason = "another process is changing it; try again when that is done";
    Error::environment(action, path, IoError::new(ErrorKind::WouldBlock, reason))
}

/// Tries until there is an outcome, or for as long as `patience` lasts.
fn patiently<T>(patience: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        let outcome = attempt();
        if outcome.is_some() || start.elapsed() >= patience {
            return outcome;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The name of a hidden file beside the model at `path`, which must not be a link.
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
    fn one_editor_at_a_time_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"model").unwrap();
        let lock = EditLock::take(&model).unwrap();
        let at = hidden(&model.canonicalize().unwrap(), ".lock");
        assert!(try_take(&at).unwrap().is_none());
        // A rebuild renames another file over the model: the lock stays.
        std::fs::write(dir.path().join("new"), b"new").unwrap();
        std::fs::rename(dir.path().join("new"), &model).unwrap();
        assert!(try_take(&at).unwrap().is_none());
        drop(lock);
        assert!(!at.exists());
        // What a killed editor left is no obstacle.
        std::fs::write(&at, b"").unwrap();
        drop(EditLock::take(&model).unwrap());
        assert!(!at.exists());
    }

    #[test]
    fn who_waits_gets_the_lock() {
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
    fn what_is_in_the_way_is_left() {
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
    fn what_may_not_be_written_is_not_edited() {
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
    fn readers_and_whoever_overwrites_exclude_each_other() {
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
