//! Overwriting a header in place, and what to do about one that was not overwritten to the end.
//!
//! Only an edit and an explicit recovery write. A reader looks for the journal's name, and if there
//! is one, whether the header is half overwritten: then it refuses the model. Both look beside the
//! real file, so a model is the same under the name of every link to it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gguf::{Error, Finding};

use super::journal::{Journal, Standing, is_journal};
use super::lock::{EditLock, exclude_readers, hidden};
use crate::output::{blamed, sync_directory};
use crate::position::{read_exact_at, write_all_at};

const SUFFIX: &str = ".journal";

/// Which header a model gets whose edit was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The one from before the edit.
    Undo,
    /// The one that the edit was to write.
    Finish,
}

/// Overwrites the start of a model: `old` bytes become `new` ones of the same number. Says whether
/// it did: not while somebody reads the model.
///
/// # Errors
/// [`Error::Environment`]; the model is then as it was, or readers say how to recover it.
pub(super) fn overwrite(lock: &EditLock, old: &[u8], new: &[u8]) -> Result<bool, Error> {
    let model = lock.model();
    let fail = |source| lock.failed("edit", source);
    let file = OpenOptions::new().read(true).write(true).open(model).map_err(fail)?;
    if !exclude_readers(&file) {
        return Ok(false);
    }
    expect(&file, old).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    let journal = Journal {
        inode: inode(&metadata),
        len: metadata.len(),
        modified: modified(&metadata),
        old: old.to_vec(),
        new: new.to_vec(),
    };
    let at = hidden(model, SUFFIX);
    clear_way(lock).and_then(|()| create(&at, &metadata, &journal.encode())).map_err(|source| {
        match blamed(&at, model) == at {
            true => Error::environment("create", &at, source),
            false => fail(source),
        }
    })?;
    sync_directory(model)?;
    if let Err(fault) = put(&file, new) {
        // Back at once where that is possible. Where it is not, the journal stays.
        if put(&file, old).is_ok() {
            let _ = std::fs::remove_file(&at);
        }
        return Err(fail(fault));
    }
    remove(&at)?;
    Ok(true)
}

/// Fails if the file does not begin with these bytes: somebody changed it who heeds no lock.
pub(super) fn expect(file: &File, start: &[u8]) -> std::io::Result<()> {
    if first_bytes(file, start.len())? == start {
        return Ok(());
    }
    Err(IoError::other("another program has changed it meanwhile"))
}

/// Removes the journal of an edit that nobody can end any more, if there is one. Done after a rebuild
/// too: such a journal has keys that the model may not have any longer.
///
/// # Errors
/// If what is there cannot be removed, or is no journal of ours.
pub(super) fn clear_way(lock: &EditLock) -> std::io::Result<()> {
    let at = hidden(lock.model(), SUFFIX);
    let Ok(there) = at.symlink_metadata() else { return Ok(()) };
    let mut start = Vec::new();
    // A link is not followed, not even to look.
    if there.is_file() {
        File::open(&at)?.take(8).read_to_end(&mut start)?;
    }
    if !there.is_file() || !is_journal(&start) {
        return Err(IoError::new(ErrorKind::AlreadyExists, "another file is in the way"));
    }
    std::fs::remove_file(at)
}

/// Writes a journal where there is none.
fn create(at: &Path, model: &Metadata, bytes: &[u8]) -> std::io::Result<()> {
    // Never through a link.
    let mut file = File::create_new(at)?;
    like(&file, model)
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .inspect_err(|_| {
            let _ = std::fs::remove_file(at);
        })
}

/// Lets those read a journal who may read its model, and nobody else: all keys are in it.
fn like(journal: &File, model: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = journal.metadata()?;
        if (own.uid(), own.gid()) != (model.uid(), model.gid()) {
            // Only the superuser can give files away.
            let _ = fchown(journal, Some(model.uid()), Some(model.gid()));
        }
    }
    journal.set_permissions(model.permissions())
}

fn put(file: &File, header: &[u8]) -> std::io::Result<()> {
    write_all_at(file, header, 0).and_then(|()| file.sync_all())
}

fn remove(at: &Path) -> Result<(), Error> {
    std::fs::remove_file(at).map_err(|source| Error::environment("remove", at, source))?;
    sync_directory(at)
}

/// Refuses an open model whose header is half overwritten, if nobody is overwriting it now.
///
/// Costs a look for the journal's name if there is none. A journal that is about another file, or
/// is damaged, changes nothing.
///
/// # Errors
/// [`Error::File`] with code `edit-interrupted`.
pub(crate) fn refuse_interrupted(file: &File, path: &Path) -> Result<(), Error> {
    let at = if path.is_symlink() {
        path.canonicalize().map(|real| hidden(&real, SUFFIX)).ok()
    } else {
        Some(hidden(path, SUFFIX))
    };
    match at.and_then(|at| load(&at, file).ok()) {
        Some((_, Standing::Between)) => Err(interrupted(path).into()),
        _ => Ok(()),
    }
}

fn interrupted(path: &Path) -> Finding {
    let path = path.display();
    let message = format!(
        "an edit of {path} was interrupted: its header is partly the old one and partly the new one"
    );
    Finding::error("edit-interrupted", message).help(
        "`gguf edit FILE --recover undo` gives it the old one, `--recover finish` the new one",
    )
}

/// The journal at `at`, and what the header of an open model is by it.
fn load(at: &Path, model: &File) -> Result<(Journal, Standing), &'static str> {
    const UNREADABLE: &str = "it cannot be read";
    let there = at.symlink_metadata().map_err(|_| UNREADABLE)?;
    if !there.is_file() {
        return Err("it is no regular file");
    }
    let len = model.metadata().map_err(|_| UNREADABLE)?.len();
    let file = File::open(at).map_err(|_| UNREADABLE)?;
    let journal = Journal::read(file, there.len(), len)?;
    let present = first_bytes(model, journal.old.len()).map_err(|_| UNREADABLE)?;
    let standing = journal.standing(&present);
    Ok((journal, standing))
}

/// Ends an edit of the file at `path` that was interrupted, one way or the other, and says whether
/// there was one.
///
/// # Errors
/// [`Error::InFile`] with code `journal-refused` if the journal that is there is damaged, or is not
/// about this very file; [`Error::Environment`] if the file cannot be written, or is in use;
/// else as [`EditLock::take`].
pub fn recover(path: &Path, to: Recovery) -> Result<bool, Error> {
    let lock = EditLock::take(path)?;
    let at = hidden(lock.model(), SUFFIX);
    if at.symlink_metadata().is_err_and(|fault| fault.kind() == ErrorKind::NotFound) {
        return Ok(false);
    }
    let fail = |source| lock.failed("recover", source);
    let file = OpenOptions::new().read(true).write(true).open(lock.model()).map_err(fail)?;
    if !exclude_readers(&file) {
        let reason = "another process has it open, or the file system has no locks";
        return Err(fail(IoError::new(ErrorKind::WouldBlock, reason)));
    }
    let refuse = |reason: &str| {
        let message = format!("this is no journal of an edit of {}: {reason}", path.display());
        let finding = Finding::error("journal-refused", message)
            .help("nothing was changed; if the file is as it should be, remove the journal");
        Error::from(finding).in_file(&at)
    };
    let (journal, standing) = load(&at, &file).map_err(refuse)?;
    if standing == Standing::Foreign {
        return Err(refuse("the header is neither the old one nor the new one"));
    }
    if journal.inode != inode(&file.metadata().map_err(fail)?) {
        return Err(refuse("it is about another file of the same length, perhaps of a copy"));
    }
    match to {
        Recovery::Undo => {
            put(&file, &journal.old).map_err(fail)?;
            // The content is that of then. Where the time cannot be set, it is a later one.
            if journal.modified > 0 {
                let then = UNIX_EPOCH + Duration::from_nanos(journal.modified);
                let _ = file.set_modified(then);
            }
        }
        Recovery::Finish => put(&file, &journal.new).map_err(fail)?,
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
            let model = dir.path().canonicalize().unwrap().join("m.gguf");
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
            // As much later as it takes on any file system to be another time.
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

        /// Opening the model under this name changes nothing; the code with which it is refused.
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
    fn overwriting_leaves_no_journal_and_waits_for_no_reader() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"old header, data").unwrap();
        let lock = EditLock::take(&model).unwrap();
        let reader = LocalFile::open(&model).unwrap();
        assert!(!overwrite(&lock, b"old header", b"new header").unwrap());
        assert_eq!(**reader.mapped(), *b"old header, data");
        drop(reader);
        assert!(overwrite(&lock, b"old header", b"new header").unwrap());
        // What was planned for another header is not written.
        assert!(overwrite(&lock, b"old header", b"NEW header").is_err());
        drop(lock);
        assert_eq!(std::fs::read(&model).unwrap(), b"new header, data");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn half_a_header_is_refused_until_somebody_decides() {
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
    fn a_journal_that_is_none_is_no_reason_to_do_anything() {
        let whole = Interrupted::half().journal.encode();
        for bytes in [&whole[..whole.len() - 1], b"GGUFEDIT", b"dear diary", b""] {
            let case = Interrupted::half();
            std::fs::write(case.at(), bytes).unwrap();
            assert_eq!(case.read(&case.model), None);
            case.refuses_to_recover("this is no journal of an edit of");
        }
    }

    /// The edit was killed, and somebody put another model of the same length in its place.
    #[test]
    fn another_model_in_its_place_is_left_alone() {
        let case = Interrupted::half();
        let other = [&header("someone else"), DATA].concat();
        assert_eq!(other.len() as u64, case.journal.len);
        std::fs::write(case.dir.path().join("other"), &other).unwrap();
        std::fs::rename(case.dir.path().join("other"), &case.model).unwrap();
        assert_eq!(case.read(&case.model), None);
        case.refuses_to_recover("neither the old one nor the new one");
        // The next edit does not need that journal.
        let lock = EditLock::take(&case.model).unwrap();
        assert!(overwrite(&lock, &header("someone else"), &header("SOMEONE ELSE")).unwrap());
        assert!(!case.at().exists());
    }

    /// Nor is one written to whose header could be of that edit.
    #[cfg(unix)]
    #[test]
    fn a_journal_of_another_inode_is_not_used() {
        let case = Interrupted::half();
        let forged = Journal { inode: case.journal.inode + 1, ..case.journal };
        std::fs::write(hidden(&case.model, SUFFIX), forged.encode()).unwrap();
        let case = Interrupted { journal: forged, ..case };
        assert_eq!(case.read(&case.model), Some("edit-interrupted"));
        case.refuses_to_recover("it is about another file");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_the_journal_of_the_file_and_to_no_other() {
        use std::os::unix::fs::symlink;
        let case = Interrupted::half();
        std::fs::create_dir(case.dir.path().join("snapshot")).unwrap();
        let link = case.dir.path().join("snapshot/model.gguf");
        symlink("../m.gguf", &link).unwrap();
        assert_eq!(case.read(&link), Some("edit-interrupted"));
        assert!(recover(&link, Recovery::Finish).unwrap());
        assert_eq!(case.read(&link), None);

        // A journal beside a link is none of the file that the link leads to.
        let case = Interrupted::half();
        let link = case.dir.path().join("link.gguf");
        symlink("m.gguf", &link).unwrap();
        std::fs::rename(case.at(), hidden(&link, SUFFIX)).unwrap();
        assert_eq!(case.read(&link), None);
        assert!(!recover(&link, Recovery::Undo).unwrap());

        // Nor is one that is a link itself.
        std::fs::rename(hidden(&link, SUFFIX), case.dir.path().join("elsewhere")).unwrap();
        symlink("elsewhere", case.at()).unwrap();
        assert_eq!(case.read(&case.model), None);
        case.refuses_to_recover("it is no regular file");
    }

    #[test]
    fn what_is_in_the_way_of_a_journal_is_left() {
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

    /// A journal has all keys of the model.
    #[cfg(unix)]
    #[test]
    fn a_journal_is_as_private_as_its_model() {
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
