//! Fuzz property of edit journals beside a model.

use std::fs;

use gguf_store::Model;
use gguf_store::edit::{HeaderState, Journal, Recovery, recover};

/// Separator of the model, the old header and the new header.
const CUT: &[u8] = b"GGUFEDIT";

/// Opening a model and recovering its edit touch only the two files, whatever the journal contains;
/// the model keeps its length, and its header changes only to one from the journal.
pub fn beside(bytes: &[u8]) {
    let (model, journal) = cut(bytes);
    // Try the bytes as they are, and as parts of a journal with correct checksums.
    check(model, journal);
    let (old, new) = cut(journal.strip_prefix(CUT).unwrap_or(journal));
    let new = new.strip_prefix(CUT).unwrap_or(new);
    let (len, old, new) = (model.len() as u64, old.to_vec(), new.to_vec());
    check(model, &Journal { inode: 0, len, modified: 0, old, new }.encode());
}

fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.windows(CUT.len()).position(|window| window == CUT).unwrap_or(bytes.len() / 2);
    bytes.split_at(at)
}

fn check(model: &[u8], journal: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("m.gguf"), model).unwrap();
    let read = Journal::read(journal, journal.len() as u64, model.len() as u64);
    let journal = match &read {
        // The journal refers to this file.
        Ok(journal) => {
            let inode = inode(&path("m.gguf"));
            Journal { inode, old: journal.old.clone(), new: journal.new.clone(), ..*journal }
                .encode()
        }
        Err(_) => journal.to_vec(),
    };
    fs::write(path(".m.gguf.journal"), &journal).unwrap();
    fs::write(path("other"), "other").unwrap();
    let opened = Model::open(&path("m.gguf"));
    let state = read.as_ref().ok().map(|read| read.header_state(&model[..read.old.len()]));
    assert!(opened.is_err() || state != Some(HeaderState::Mixed));
    drop(opened.map(|model| model.tensors().len()));
    assert_eq!(fs::read(path("m.gguf")).unwrap(), model);
    assert_eq!(fs::read(path(".m.gguf.journal")).unwrap(), journal);

    let undone = recover(&path("m.gguf"), Recovery::Undo);
    let after = fs::read(path("m.gguf")).unwrap();
    match (undone, &read) {
        (Ok(_), Ok(read)) => {
            assert_ne!(state, Some(HeaderState::Foreign));
            let rest = &model[read.old.len()..];
            assert!(after.starts_with(&read.old) && after.ends_with(rest));
            assert_eq!(after.len(), model.len());
        }
        _ => assert_eq!(after, model),
    }
    assert_eq!(fs::read(path("other")).unwrap(), b"other");
    for entry in fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(["m.gguf", ".m.gguf.journal", "other"].iter().any(|n| name == *n), "{name:?}");
    }
}

#[cfg(unix)]
fn inode(path: &std::path::Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap())
}

#[cfg(not(unix))]
fn inode(_: &std::path::Path) -> u64 {
    0
}
