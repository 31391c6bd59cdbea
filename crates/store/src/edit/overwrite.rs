//! In-place header edits and crash recovery.
//!
//! Only an edit and an explicit recovery write. A reader looks for the journal and, if there is
//! one, refuses a model whose header is partly overwritten. Both resolve links first, so a model
//! behaves the same under the name of every link to it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gguf::{Error, Finding};

use super::journal::{HeaderState, Journal, is_journal};
use super::lock::{EditLock, exclude_readers, hidden};
use crate::output::{conflicting_path, sync_directory};
use crate::paths::resolve;
use crate::position::{read_exact_at, write_all_at};

const SUFFIX: &str = ".journal";

/// Direction in which [`recover()`] ends an interrupted edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Restore the old header.
    Undo,
    /// Write the new header.
    Finish,
}

/// Replaces the header `old` at the start of the model by `new`, of the same length. Returns
/// `false` without a change if the model is open elsewhere.
///
/// # Errors
/// [`Error::Environment`]; the model is then unchanged, or readers report how to recover it.
pub(super) fn overwrite(lock: &EditLock, old: &[u8], new: &[u8]) -> Result<bool, Error> {
    let model = lock.model();
    let fail = |source| lock.failed("edit", source);
    let file = OpenOptions::new().read(true).write(true).open(model).map_err(fail)?;
    if !exclude_readers(&file) {
        return Ok(false);
    }
    check_start(&file, old).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    let journal = Journal {
        inode: inode(&metadata),
        len: metadata.len(),
        modified: modified(&metadata),
        old: old.to_vec(),
        new: new.to_vec(),
    };
    let at = hidden(model, SUFFIX);
    remove_stale_journal(lock).and_then(|()| create(&at, &metadata, &journal.encode())).map_err(
        |source| match conflicting_path(&at, model) == at {
            true => Error::environment("create", &at, source),
            false => fail(source),
        },
    )?;
    sync_directory(model)?;
    if let Err(fault) = write_header(&file, new) {
        // Restore the old header at once. If that fails, the journal stays for recovery.
        if write_header(&file, old).is_ok() {
            let _ = std::fs::remove_file(&at);
        }
        return Err(fail(fault));
    }
    remove(&at)?;
    Ok(true)
}

/// Fails if the file does not begin with `start`: a program that ignores the lock has changed it.
pub(super) fn check_start(file: &File, start: &[u8]) -> std::io::Result<()> {
    if first_bytes(file, start.len())? == start {
        return Ok(());
    }
    Err(IoError::other("another program has changed it meanwhile"))
}

/// Removes the journal of an edit that can no longer be recovered, if there is one. A rebuild calls
/// this too: the journal holds metadata that the model may no longer have.
///
/// # Errors
/// If the file cannot be removed or is not a journal.
pub(super) fn remove_stale_journal(lock: &EditLock) -> std::io::Result<()> {
    let at = hidden(lock.model(), SUFFIX);
    let Ok(metadata) = at.symlink_metadata() else { return Ok(()) };
    let mut start = Vec::new();
    // Do not follow a link, not even to read.
    if metadata.is_file() {
        File::open(&at)?.take(8).read_to_end(&mut start)?;
    }
    if !metadata.is_file() || !is_journal(&start) {
        return Err(IoError::new(ErrorKind::AlreadyExists, "another file is in the way"));
    }
    std::fs::remove_file(at)
}

/// Creates the journal file and writes `bytes`.
fn create(at: &Path, model: &Metadata, bytes: &[u8]) -> std::io::Result<()> {
    // `create_new` does not follow links.
    let mut file = File::create_new(at)?;
    copy_permissions(&file, model)
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .inspect_err(|_| {
            let _ = std::fs::remove_file(at);
        })
}

/// Gives the journal the owner and permissions of its model: it holds all metadata.
fn copy_permissions(journal: &File, model: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = journal.metadata()?;
        if (own.uid(), own.gid()) != (model.uid(), model.gid()) {
            // Only the superuser can change the owner of a file.
            let _ = fchown(journal, Some(model.uid()), Some(model.gid()));
        }
    }
    journal.set_permissions(model.permissions())
}

fn write_header(file: &File, header: &[u8]) -> std::io::Result<()> {
    write_all_at(file, header, 0).and_then(|()| file.sync_all())
}

fn remove(at: &Path) -> Result<(), Error> {
    std::fs::remove_file(at).map_err(|source| Error::environment("remove", at, source))?;
    sync_directory(at)
}

/// Refuses an open model whose header is partly overwritten and not being edited now.
///
/// Costs one lookup of the journal's name if there is none. A journal that is corrupt or belongs to
/// another file is ignored.
///
/// # Errors
/// [`Error::File`] with code `edit-interrupted`.
pub(crate) fn refuse_interrupted(file: &File, path: &Path) -> Result<(), Error> {
    let at = if path.is_symlink() {
        resolve(path).map(|real| hidden(&real, SUFFIX)).ok()
    } else {
        Some(hidden(path, SUFFIX))
    };
    match at.and_then(|at| load(&at, file).ok()) {
        Some((_, HeaderState::Mixed)) => Err(interrupted(path).into()),
        _ => Ok(()),
    }
}

fn interrupted(path: &Path) -> Finding {
    let path = path.display();
    let message =
        format!("an edit of {path} was interrupted: its header is partly old and partly new");
    Finding::error("edit-interrupted", message).help(
        "run `gguf edit FILE --recover undo` to restore the old header, `--recover finish` to write the new one",
    )
}

/// Reads the journal at `at` and compares the header of an open model with it.
fn load(at: &Path, model: &File) -> Result<(Journal, HeaderState), &'static str> {
    const UNREADABLE: &str = "it cannot be read";
    let metadata = at.symlink_metadata().map_err(|_| UNREADABLE)?;
    if !metadata.is_file() {
        return Err("it is not a regular file");
    }
    let len = model.metadata().map_err(|_| UNREADABLE)?.len();
    let file = File::open(at).map_err(|_| UNREADABLE)?;
    let journal = Journal::read(file, metadata.len(), len)?;
    let present = first_bytes(model, journal.old.len()).map_err(|_| UNREADABLE)?;
    let state = journal.header_state(&present);
    Ok((journal, state))
}

/// Ends an interrupted edit of the file at `path` in the given direction; returns whether there was
/// one.
///
/// # Errors
/// [`Error::InFile`] with code `journal-refused` if the journal is corrupt or does not belong to
/// this file; [`Error::Environment`] if the file cannot be written or is in use; otherwise as
/// [`EditLock::take`].
pub fn recover(path: &Path, to: Recovery) -> Result<bool, Error> {
    let lock = EditLock::take(path)?;
    let at = hidden(lock.model(), SUFFIX);
    if at.symlink_metadata().is_err_and(|fault| fault.kind() == ErrorKind::NotFound) {
        return Ok(false);
    }
    let fail = |source| lock.failed("recover", source);
    let file = lock.open_exclusive("recover")?;
    let refuse = |reason: &str| {
        let message = format!("this is not a journal of an edit of {}: {reason}", path.display());
        let finding = Finding::error("journal-refused", message)
            .help("nothing was changed; if the file is correct, remove the journal");
        Error::from(finding).in_file(&at)
    };
    let (journal, state) = load(&at, &file).map_err(refuse)?;
    if state == HeaderState::Foreign {
        return Err(refuse("the header is neither the old nor the new one"));
    }
    if journal.inode != inode(&file.metadata().map_err(fail)?) {
        return Err(refuse("it belongs to another file of the same length, perhaps a copy"));
    }
    match to {
        Recovery::Undo => {
            write_header(&file, &journal.old).map_err(fail)?;
            // Restore the modification time too, where the system can.
            if journal.modified > 0 {
                let then = UNIX_EPOCH + Duration::from_nanos(journal.modified);
                let _ = file.set_modified(then);
            }
        }
        Recovery::Finish => write_header(&file, &journal.new).map_err(fail)?,
    }
    remove(&at)?;
    Ok(true)
}

fn first_bytes(file: &File, len: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}

fn modified(metadata: &Metadata) -> u64 {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    let since = metadata.modified().ok().and_then(since);
    since.and_then(|since| since.as_nanos().try_into().ok()).unwrap_or(0)
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::journal::tests::{difference, header};
    use super::*;
    use crate::LocalFile;

    const DATA: &[u8] = b"no data of a tensor";

    /// A model whose edit was interrupted after `cut` bytes of the new header.
    struct Interrupted {
        dir: tempfile::TempDir,
        model: PathBuf,
        journal: Journal,
    }

    impl Interrupted {
        fn after(cut: usize) -> Self {
            let (old, new) = (header("the old name"), header("THE NEW NAME"));
            let dir = tempfile::tempdir().unwrap();
            let model = resolve(dir.path()).unwrap().join("m.gguf");
            std::fs::write(&model, [&old, DATA].concat()).unwrap();
            let metadata = model.metadata().unwrap();
            let journal = Journal {
                inode: inode(&metadata),
                len: metadata.len(),
                modified: modified(&metadata),
                old,
                new,
            };
            let file = OpenOptions::new().write(true).open(&model).unwrap();
            write_all_at(&file, &journal.new[..cut], 0).unwrap();
            // Late enough to differ on any file system.
            let later = metadata.modified().unwrap() + Duration::from_secs(10);
            file.set_modified(later).unwrap();
            std::fs::write(hidden(&model, SUFFIX), journal.encode()).unwrap();
            Self { dir, model, journal }
        }

        fn half() -> Self {
            Self::after(difference(&header("the old name"), &header("THE NEW NAME")) + 6)
        }

        fn at(&self) -> PathBuf {
            hidden(&self.model, SUFFIX)
        }

        /// Opens the model under this name, checks that no file changed, and returns the code of
        /// the error.
        fn read(&self, name: &Path) -> Option<&'static str> {
            let state = || {
                let names = std::fs::read_dir(self.dir.path()).unwrap();
                let mut files: Vec<_> = names
                    .map(|entry| entry.unwrap().path())
                    .map(|path| (std::fs::read(&path).ok(), path.metadata().ok(), path))
                    .map(|(bytes, metadata, path)| {
                        let metadata = metadata.map(|it| (inode(&it), it.modified().unwrap()));
                        (bytes, metadata, path)
                    })
                    .collect();
                files.sort_by(|a, b| a.2.cmp(&b.2));
                files
            };
            let before = state();
            let opened = [LocalFile::open(name).map(drop), crate::Model::open(name).map(drop)];
            assert_eq!(state(), before);
            let [a, b] = opened.map(|opened| match opened {
                Ok(()) => None,
                Err(Error::File(finding)) => Some(finding.code),
                Err(other) => panic!("{other}"),
            });
            assert_eq!(a, b);
            a
        }

        #[track_caller]
        fn refuses_to_recover(&self, reason: &str) {
            let before = std::fs::read(&self.model).unwrap();
            for to in [Recovery::Undo, Recovery::Finish] {
                let error = recover(&self.model, to).unwrap_err();
                assert!(error.to_string().contains(reason), "{error}");
                assert!(matches!(error, Error::InFile { path, .. } if path == self.at()));
            }
            assert_eq!(std::fs::read(&self.model).unwrap(), before);
            assert!(self.at().symlink_metadata().is_ok());
        }
    }

    #[test]
    fn overwriting_leaves_no_journal_and_requires_no_readers() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"old header, data").unwrap();
        let lock = EditLock::take(&model).unwrap();
        let reader = LocalFile::open(&model).unwrap();
        assert!(!overwrite(&lock, b"old header", b"new header").unwrap());
        assert_eq!(**reader.mapped(), *b"old header, data");
        drop(reader);
        assert!(overwrite(&lock, b"old header", b"new header").unwrap());
        // A new header that was planned for another old header is not written.
        assert!(overwrite(&lock, b"old header", b"NEW header").is_err());
        drop(lock);
        assert_eq!(std::fs::read(&model).unwrap(), b"new header, data");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn partial_headers_are_refused_until_recovery() {
        let len = header("the old name").len();
        let differs = difference(&header("the old name"), &header("THE NEW NAME"));
        for cut in [0, differs, differs + 1, differs + 11, differs + 12, len] {
            for to in [Recovery::Undo, Recovery::Finish] {
                let case = Interrupted::after(cut);
                let (old, new) = (case.journal.old.clone(), case.journal.new.clone());
                let present = first_bytes(&File::open(&case.model).unwrap(), len).unwrap();
                let half = present != old && present != new;
                assert_eq!(case.read(&case.model), half.then_some("edit-interrupted"), "{cut}");
                assert!(recover(&case.model, to).unwrap());
                let expected = if to == Recovery::Undo { old } else { new };
                assert_eq!(std::fs::read(&case.model).unwrap(), [&expected, DATA].concat());
                assert_eq!(std::fs::read_dir(case.dir.path()).unwrap().count(), 1);
                assert_eq!(case.read(&case.model), None);
                assert!(!recover(&case.model, to).unwrap());
                let time = modified(&case.model.metadata().unwrap());
                assert_eq!(time == case.journal.modified, to == Recovery::Undo);
            }
        }
    }

    #[test]
    fn invalid_journals_are_ignored() {
        let whole = Interrupted::half().journal.encode();
        for bytes in [&whole[..whole.len() - 1], b"GGUFEDIT", b"dear diary", b""] {
            let case = Interrupted::half();
            std::fs::write(case.at(), bytes).unwrap();
            assert_eq!(case.read(&case.model), None);
            case.refuses_to_recover("this is not a journal of an edit of");
        }
    }

    /// The edit was killed, and another model of the same length replaced the file.
    #[test]
    fn replaced_models_are_not_recovered() {
        let case = Interrupted::half();
        let other = [&header("someone else"), DATA].concat();
        assert_eq!(other.len() as u64, case.journal.len);
        std::fs::write(case.dir.path().join("other"), &other).unwrap();
        std::fs::rename(case.dir.path().join("other"), &case.model).unwrap();
        assert_eq!(case.read(&case.model), None);
        case.refuses_to_recover("neither the old nor the new one");
        // The next edit removes the stale journal.
        let lock = EditLock::take(&case.model).unwrap();
        assert!(overwrite(&lock, &header("someone else"), &header("SOMEONE ELSE")).unwrap());
        assert!(!case.at().exists());
    }

    /// Recovery rejects a forged journal although the header matches it.
    #[cfg(unix)]
    #[test]
    fn journals_of_other_inodes_are_rejected() {
        let case = Interrupted::half();
        let forged = Journal { inode: case.journal.inode + 1, ..case.journal };
        std::fs::write(hidden(&case.model, SUFFIX), forged.encode()).unwrap();
        let case = Interrupted { journal: forged, ..case };
        assert_eq!(case.read(&case.model), Some("edit-interrupted"));
        case.refuses_to_recover("it belongs to another file");
    }

    #[cfg(unix)]
    #[test]
    fn links_resolve_to_the_journal_of_their_target() {
        use std::os::unix::fs::symlink;
        let case = Interrupted::half();
        std::fs::create_dir(case.dir.path().join("snapshot")).unwrap();
        let link = case.dir.path().join("snapshot/model.gguf");
        symlink("../m.gguf", &link).unwrap();
        assert_eq!(case.read(&link), Some("edit-interrupted"));
        assert!(recover(&link, Recovery::Finish).unwrap());
        assert_eq!(case.read(&link), None);

        // A journal beside a link does not belong to the target of the link.
        let case = Interrupted::half();
        let link = case.dir.path().join("link.gguf");
        symlink("m.gguf", &link).unwrap();
        std::fs::rename(case.at(), hidden(&link, SUFFIX)).unwrap();
        assert_eq!(case.read(&link), None);
        assert!(!recover(&link, Recovery::Undo).unwrap());

        // Nor does a journal that is itself a link.
        std::fs::rename(hidden(&link, SUFFIX), case.dir.path().join("elsewhere")).unwrap();
        symlink("elsewhere", case.at()).unwrap();
        assert_eq!(case.read(&case.model), None);
        case.refuses_to_recover("it is not a regular file");
    }

    #[test]
    fn files_in_place_of_the_journal_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"old header, data").unwrap();
        let at = hidden(&model, SUFFIX);
        let lock = EditLock::take(&model).unwrap();
        let refused = || {
            let error = overwrite(&lock, b"old header", b"new header").unwrap_err().to_string();
            assert!(error.ends_with("another file is in the way"), "{error}");
            assert_eq!(std::fs::read(&model).unwrap(), b"old header, data");
        };
        std::fs::write(&at, b"dear diary").unwrap();
        refused();
        assert_eq!(std::fs::read(&at).unwrap(), b"dear diary");
        #[cfg(unix)]
        {
            std::fs::remove_file(&at).unwrap();
            let victim = dir.path().join("victim");
            std::fs::write(&victim, b"").unwrap();
            std::os::unix::fs::symlink(&victim, &at).unwrap();
            refused();
            assert_eq!(std::fs::read(&victim).unwrap(), b"");
        }
    }

    /// A journal holds all metadata of the model.
    #[cfg(unix)]
    #[test]
    fn journals_have_the_permissions_of_the_model() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (model, at) = (dir.path().join("m.gguf"), dir.path().join("journal"));
        std::fs::write(&model, b"model").unwrap();
        for mode in [0o600, 0o666] {
            std::fs::set_permissions(&model, PermissionsExt::from_mode(mode)).unwrap();
            create(&at, &model.metadata().unwrap(), b"GGUFEDIT").unwrap();
            assert_eq!(at.metadata().unwrap().permissions().mode() & 0o777, mode);
            std::fs::remove_file(&at).unwrap();
        }
    }
}
