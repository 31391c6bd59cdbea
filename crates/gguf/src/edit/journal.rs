//! The journal of a header that is being overwritten in place.
//!
//! Before the first byte changes, the old header is saved in a file beside the model. If the
//! process or the machine stops before the new header is complete, whoever opens the model next
//! finds the journal and puts the old header back. The journal is locked while its writer lives,
//! so that nobody mistakes work in progress for a crash.
//!
//! ```text
//! "GGUFJRNL"  length of the model u64  CRC-32 of what follows u32  old header bytes
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::output::{sync_directory, write_all_at};

const MAGIC: &[u8; 8] = b"GGUFJRNL";
const PREFIX: usize = 8 + 8 + 4;

/// Where the journal of a model lies: beside it, hidden.
fn path_of(model: &Path) -> PathBuf {
    let name = model.file_name().unwrap_or_default().to_string_lossy();
    model.with_file_name(format!(".{name}.journal"))
}

/// Overwrites the start of a model: `old` bytes become `new` ones of the same number.
///
/// # Errors
/// [`Error::Environment`]; the model is then as it was, at the latest when it is opened next.
pub(super) fn overwrite(model: &Path, len: u64, old: &[u8], new: &[u8]) -> Result<(), Error> {
    let journal_path = path_of(model);
    let fail = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::environment(action, &path, source)
    };
    let file = OpenOptions::new().write(true).open(model).map_err(fail("edit", model))?;
    // Written under another name first, so that a journal is complete from the moment it exists.
    let unfinished = journal_path.with_extension("journal.part");
    let mut journal = File::create(&unfinished).map_err(fail("create", &unfinished))?;
    let written = journal
        .lock()
        .and_then(|()| journal.write_all(&encode(len, old)))
        .and_then(|()| journal.sync_all())
        .and_then(|()| std::fs::rename(&unfinished, &journal_path));
    if let Err(source) = written {
        // Nothing has changed; what remains of the journal has no name that anybody looks for.
        let _ = std::fs::remove_file(&unfinished);
        return Err(fail("write", &journal_path)(source));
    }
    sync_directory(model)?;
    write_all_at(&file, new, 0).and_then(|()| file.sync_all()).map_err(fail("edit", model))?;
    std::fs::remove_file(&journal_path).map_err(fail("remove", &journal_path))?;
    sync_directory(model)?;
    Ok(())
}

/// Puts the old header back if an edit of this model was interrupted, and says whether it was.
///
/// Waits for an edit that is going on in another process. Costs a look for the journal's name if
/// there is none.
///
/// # Errors
/// [`Error::Environment`] if there is a journal and the model cannot be restored: opening it as
/// it is might show half a header.
pub fn recover(model: &Path) -> Result<bool, Error> {
    let path = path_of(model);
    let fail = |action| {
        let path = path.clone();
        move |source| Error::environment(action, &path, source)
    };
    let mut journal = match File::open(&path) {
        Ok(journal) => journal,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(fault) => return Err(fail("open")(fault)),
    };
    journal.lock().map_err(fail("lock"))?;
    // Whoever held the lock may have finished meanwhile.
    if !path.exists() {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    journal.read_to_end(&mut bytes).map_err(fail("read"))?;
    let restore = |source| Error::environment("restore the interrupted edit of", model, source);
    let file = OpenOptions::new().write(true).open(model).map_err(restore)?;
    let len = file.metadata().map_err(restore)?.len();
    // A journal of another file, or a damaged one, proves nothing about this model.
    let Some(old) = decode(&bytes, len) else {
        return Err(fail("use")(std::io::ErrorKind::InvalidData.into()));
    };
    write_all_at(&file, old, 0).and_then(|()| file.sync_all()).map_err(restore)?;
    std::fs::remove_file(&path).map_err(fail("remove"))?;
    sync_directory(model)?;
    Ok(true)
}

fn encode(len: u64, old: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + old.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(old).to_le_bytes());
    bytes.extend_from_slice(old);
    bytes
}

/// The old header, if the journal is whole and belongs to a model of `len` bytes.
fn decode(bytes: &[u8], len: u64) -> Option<&[u8]> {
    let (prefix, old) = bytes.split_at_checked(PREFIX)?;
    let checksum = crc32fast::hash(old).to_le_bytes();
    (prefix[..8] == MAGIC[..]
        && prefix[8..16] == len.to_le_bytes()
        && prefix[16..] == checksum
        && old.len() as u64 <= len)
        .then_some(old)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_edit_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"old header, data").unwrap();
        assert!(!recover(&model).unwrap());
        // As if the process had stopped half-way through the new header.
        std::fs::write(path_of(&model), encode(16, b"old header")).unwrap();
        std::fs::write(&model, &b"new heheader, data"[..16]).unwrap();
        assert!(recover(&model).unwrap());
        assert_eq!(std::fs::read(&model).unwrap()[..10], *b"old header");
        assert!(!path_of(&model).exists());
    }

    #[test]
    fn a_journal_that_does_not_fit_is_no_reason_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"untouched").unwrap();
        let whole = encode(9, b"old");
        let mut damaged = whole.clone();
        damaged[21] ^= 1;
        for journal in [encode(10, b"old"), damaged, whole[..19].to_vec(), Vec::new()] {
            std::fs::write(path_of(&model), &journal).unwrap();
            assert!(recover(&model).is_err());
            assert_eq!(std::fs::read(&model).unwrap(), b"untouched");
        }
    }

    #[test]
    fn overwriting_leaves_no_journal() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().join("m.gguf");
        std::fs::write(&model, b"old header, data").unwrap();
        overwrite(&model, 16, b"old header", b"new header").unwrap();
        assert_eq!(std::fs::read(&model).unwrap(), b"new header, data");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
