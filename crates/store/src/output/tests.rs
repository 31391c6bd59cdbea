use std::fs;

use super::*;

fn create(target: &Path) -> Result<AtomicFile, Error> {
    AtomicFile::create(target, &Overwrite::default())
}

fn replace(target: &Path) -> Result<AtomicFile, Error> {
    AtomicFile::create(target, &Overwrite::new(Existing::Replace))
}

fn resumable(target: &Path, resume: bool) -> Result<AtomicFile, Error> {
    AtomicFile::resumable(target, resume, &Overwrite::default())
}

/// Returns the files of a directory with their content, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_target_appears_on_commit() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.gguf");
    fs::write(&target, b"old").unwrap();
    let output = replace(&target).unwrap();
    output.set_len(4).unwrap();
    output.write_at(b"w", 3).unwrap();
    drop(output);
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"old".to_vec())]);

    let output = replace(&target).unwrap();
    output.set_len(4).unwrap();
    output.write_at(b"w", 3).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
    output.commit().unwrap();
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"\0\0\0w".to_vec())]);
}

#[test]
fn existing_files_are_not_replaced_by_default() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.gguf");
    let output = create(&target).unwrap();
    output.write_at(b"new", 0).unwrap();
    // Another process creates the target in between.
    fs::write(&target, b"old").unwrap();
    assert!(matches!(output.commit(), Err(Error::Exists(path)) if path == target));
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"old".to_vec())]);
    assert!(matches!(create(&target), Err(Error::Exists(_))));
    assert!(matches!(resumable(&target, false), Err(Error::Exists(_))));
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"old".to_vec())]);
}

#[test]
fn abandoned_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.gguf");
    let abandoned = [".a.gguf.0123456789aB.gguf-kit-part", ".a.gguf.unfinished.gguf-kit-part"];
    let unrelated = [
        ".a.gguf.new.0123456789aB.gguf-kit-part",
        ".a.gguf.new.unfinished.gguf-kit-part",
        ".a.gguf.new.unfinished.part",
        ".a.gguf.users-own-file.part",
        ".a.gguf.users-own.gguf-kit-part",
        ".b.gguf.0123456789aB.gguf-kit-part",
        "a.gguf.0123456789aB.gguf-kit-part",
    ];
    for name in abandoned.iter().chain(&unrelated) {
        fs::write(dir.path().join(name), b"half").unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("elsewhere", dir.path().join(".a.gguf.0123456789aC.gguf-kit-part"))
        .unwrap();
    let (first, second) = (create(&target).unwrap(), create(&target).unwrap());
    for name in abandoned {
        assert!(!dir.path().join(name).exists(), "{name} stays");
    }
    for name in unrelated {
        assert!(dir.path().join(name).exists(), "{name} is gone");
    }
    #[cfg(unix)]
    assert!(dir.path().join(".a.gguf.0123456789aC.gguf-kit-part").is_symlink());
    first.write_at(b"1", 0).unwrap();
    second.write_at(b"2", 0).unwrap();
    first.commit().unwrap();
    assert!(matches!(second.commit(), Err(Error::Exists(_))));
    assert_eq!(fs::read(&target).unwrap(), b"1");
}

#[test]
fn interrupted_writes_resume() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.gguf");
    let names = || fs::read_dir(dir.path()).unwrap().count();
    let first = resumable(&target, true).unwrap();
    first.write_at(b"half", 0).unwrap();
    assert!(matches!(resumable(&target, true), Err(Error::Caller(_))));
    drop(first);

    let second = resumable(&target, true).unwrap();
    let mut found = [0; 8];
    assert_eq!((second.byte_len().unwrap(), second.read_at(&mut found, 2).unwrap()), (4, 2));
    assert_eq!(&found[..2], b"lf");
    second.write_at(b"whole", 0).unwrap();
    second.commit().unwrap();
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"whole".to_vec())]);

    let target = dir.path().join("b.gguf");
    drop(resumable(&target, true).unwrap());
    assert_eq!(names(), 2);
    let restarted = resumable(&target, false).unwrap();
    assert_eq!(restarted.byte_len().unwrap(), 0);
    drop(restarted);
    assert_eq!(names(), 1);
}

#[test]
fn only_writable_files_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(replace(dir.path()), Err(Error::Caller(_))));
    assert!(matches!(replace(&dir.path().join("new/")), Err(Error::Caller(_))));
    let target = dir.path().join("a.gguf");
    fs::write(&target, b"old").unwrap();
    let mut permissions = target.metadata().unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&target, permissions).unwrap();
    assert!(matches!(replace(&target), Err(Error::Environment { .. })));
    assert_eq!(files(dir.path()), [("a.gguf".to_owned(), b"old".to_vec())]);
}

#[test]
fn outputs_larger_than_the_disk_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("a.gguf");
    let full = |result: Result<(), Error>| match result {
        Err(Error::Environment { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    };
    // More than any disk has, less than file systems allow.
    let much = 1 << 43;
    assert_eq!(
        full(require_space([(&*target, much), (&*target, much)])),
        std::io::ErrorKind::StorageFull
    );
    require_space([(&*target, 1), (Path::new("no/such/directory/a.gguf"), u64::MAX)]).unwrap();
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn links_are_followed_and_devices_refused() {
        assert!(matches!(replace(Path::new("/dev/null")), Err(Error::Caller(_))));
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("a.gguf"), dir.path().join("b.gguf"));
        fs::write(&target, b"old").unwrap();
        symlink(&target, &link).unwrap();
        replace(&link).unwrap().commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"");

        fs::remove_file(&target).unwrap();
        for refused in [create(&link), replace(&link), resumable(&link, false)] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("is a dangling link"), "{message}");
        }
        assert!(link.is_symlink() && !target.exists());
    }

    #[test]
    fn inputs_are_protected_under_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("model/1_Pooling")).unwrap();
        for name in ["in.gguf", "model/w.safetensors", "model/1_Pooling/config.json"] {
            fs::write(at(name), b"input").unwrap();
        }
        fs::write(at("model/made.gguf"), b"output").unwrap();
        symlink(at("in.gguf"), at("link.gguf")).unwrap();
        symlink(at("link.gguf"), at("link of a link.gguf")).unwrap();
        fs::hard_link(at("in.gguf"), at("other name.gguf")).unwrap();
        fs::hard_link(at("model/w.safetensors"), at("w")).unwrap();
        let overwrite = Overwrite::new(Existing::Replace).protecting([
            at("in.gguf"),
            at("model"),
            at("not there"),
        ]);
        for name in [
            "in.gguf",
            "link.gguf",
            "link of a link.gguf",
            "other name.gguf",
            "w",
            "model/../model/w.safetensors",
            "model/1_Pooling/config.json",
        ] {
            let message = overwrite.check(&at(name)).unwrap_err().to_string();
            assert!(message.contains("is an input"), "{message}");
        }
        overwrite.check(&at("model/made.gguf")).unwrap();
        overwrite.check(&at("new.gguf")).unwrap();
    }

    #[test]
    fn permissions_and_owner_are_preserved() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.gguf");
        let part = || {
            let mut names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap());
            let part = names.find(|entry| entry.file_name() != "a.gguf").unwrap();
            part.metadata().unwrap().mode() & 0o777
        };
        for mode in [0o600, 0o640, 0o664, 0o755, 0o200] {
            for is_resumable in [false, true] {
                fs::write(&target, b"old").unwrap();
                fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
                // Only root can change the owner.
                let given = std::os::unix::fs::chown(&target, Some(4321), Some(8765)).is_ok();
                let overwrite = Overwrite::new(Existing::Replace);
                let output = match is_resumable {
                    false => AtomicFile::create(&target, &overwrite),
                    true => AtomicFile::resumable(&target, false, &overwrite),
                };
                let output = output.unwrap();
                output.write_at(b"new", 0).unwrap();
                assert_eq!(part(), 0o600);
                output.commit().unwrap();
                let found = target.metadata().unwrap();
                assert_eq!(found.mode() & 0o777, mode);
                if given {
                    assert_eq!((found.uid(), found.gid()), (4321, 8765));
                }
                assert_eq!(found.len(), 3);
                fs::remove_file(&target).unwrap();
            }
        }
    }

    #[test]
    fn foreign_unfinished_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (target, precious) = (dir.path().join("a.gguf"), dir.path().join("precious"));
        let part = dir.path().join(".a.gguf.unfinished.gguf-kit-part");
        fs::write(&precious, b"precious").unwrap();
        symlink(&precious, &part).unwrap();
        assert!(resumable(&target, false).is_err());
        fs::remove_file(&part).unwrap();
        fs::hard_link(&precious, &part).unwrap();
        assert!(resumable(&target, false).is_err());
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }
}
