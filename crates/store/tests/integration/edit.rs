//! Header edits on disk: in place where they fit, rebuilt otherwise, never changing tensor data.

use std::ops::ControlFlow;
use std::path::PathBuf;

use gguf::{Error, Gguf, Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_store::LocalFile;
use gguf_store::edit::{EditLock, EditOutcome, RESERVE_KEY, Recovery, edit_header, recover};

struct Model {
    dir: tempfile::TempDir,
}

impl Model {
    fn new() -> Self {
        let mut draft = RawHeader::default();
        draft.metadata.set("general.architecture", "llama");
        draft.metadata.set("general.name", "A model with a name of some length");
        for name in ["a.weight", "b.weight"] {
            draft.tensors.push(TensorInfo {
                name: name.into(),
                shape: Shape::new(&[10]).unwrap(),
                tensor_type: TensorType::F32,
                offset: 0,
                opaque_len: None,
            });
        }
        let len = draft.lay_out().unwrap();
        let mut bytes = write_header(&Header::new(draft).unwrap()).unwrap();
        bytes.extend((0..len).map(|i| i as u8));
        let model = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::write(model.path(), bytes).unwrap();
        model
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("m.gguf")
    }

    fn edit(&self, reserve: u64, edit: impl FnOnce(&mut RawHeader)) -> EditOutcome {
        edit_header(&self.path(), reserve, &(), |draft| {
            edit(draft);
            Ok::<_, Error>(())
        })
        .unwrap()
    }

    /// Checks name, tensor names and unchanged data.
    fn check(&self, name: &str, tensors: [&str; 2]) {
        let map = LocalFile::open(&self.path()).unwrap();
        let model = Gguf::read(map.mapped()).unwrap();
        assert_eq!(model.metadata().str("general.name"), Some(name));
        for (i, (tensor, expected)) in model.tensors().iter().zip(tensors).enumerate() {
            assert_eq!(tensor.name, expected);
            let first = i as u8 * 64;
            let data: Vec<u8> = (first..first + 40).collect();
            assert_eq!(model.data(tensor).unwrap(), data);
        }
        assert_eq!(std::fs::read_dir(self.dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn fitting_edits_are_in_place() {
    let model = Model::new();
    let same_length = "Another one with a name like that.";
    let saved = model.edit(0, |draft| draft.metadata.set("general.name", same_length));
    assert_eq!(saved, EditOutcome::InPlace);
    model.check(same_length, ["a.weight", "b.weight"]);
    let saved = model.edit(0, |draft| draft.metadata.set("general.name", same_length));
    assert_eq!(saved, EditOutcome::Unchanged);
    let saved = model.edit(0, |draft| draft.tensors[1].name = "c.weight".into());
    assert_eq!(saved, EditOutcome::InPlace);
    model.check(same_length, ["a.weight", "c.weight"]);
}

#[test]
fn rebuilt_files_have_a_reserve() {
    let model = Model::new();
    let long = "long ".repeat(100);
    let set = |name: &str| {
        let name = name.to_owned();
        model.edit(10_000, |draft| draft.metadata.set("general.name", name))
    };
    assert_eq!(set(&long), EditOutcome::Rebuilt);
    model.check(&long, ["a.weight", "b.weight"]);
    for name in ["short".to_owned(), "longer ".repeat(1000), String::new(), long.clone()] {
        assert_eq!(set(&name), EditOutcome::InPlace);
        model.check(&name, ["a.weight", "b.weight"]);
    }
    // A rebuild removes the stale journal of a killed edit.
    std::fs::write(model.dir.path().join(".m.gguf.journal"), b"GGUFEDIT").unwrap();
    assert_eq!(set(&"x".repeat(20_000)), EditOutcome::Rebuilt);
    model.check(&"x".repeat(20_000), ["a.weight", "b.weight"]);
}

/// Lengths from zero to well beyond the reserve give the right result, in place or rebuilt.
#[test]
fn every_length_fits_or_is_rebuilt() {
    let model = Model::new();
    model.edit(300, |draft| draft.metadata.set("general.name", "x".repeat(60)));
    let start = std::fs::read(model.path()).unwrap();
    for n in (0..700).step_by(9) {
        std::fs::write(model.path(), &start).unwrap();
        let name = "y".repeat(n);
        let expected = name.clone();
        model.edit(0, |draft| draft.metadata.set("general.name", name));
        model.check(&expected, ["a.weight", "b.weight"]);
    }
}

#[test]
fn layout_changes_are_refused() {
    let model = Model::new();
    let before = std::fs::read(model.path()).unwrap();
    let edits: [fn(&mut RawHeader); 4] = [
        |draft| drop(draft.tensors.pop()),
        |draft| draft.tensors[0].offset = 64,
        |draft| draft.metadata.set("general.alignment", 64u32),
        |draft| draft.tensors[0].name = "b.weight".into(),
    ];
    for edit in edits {
        let result = edit_header(&model.path(), 0, &(), |draft| {
            edit(draft);
            Ok::<_, Error>(())
        });
        assert!(result.is_err());
        assert_eq!(std::fs::read(model.path()).unwrap(), before);
    }
}

#[test]
fn the_reserve_is_an_ordinary_key() {
    let model = Model::new();
    model.edit(5000, |draft| draft.metadata.set("general.name", "x".repeat(90)));
    let map = LocalFile::open(&model.path()).unwrap();
    let file = Gguf::read(map.mapped()).unwrap();
    let reserve = file.metadata().array(RESERVE_KEY).unwrap();
    assert!(reserve.len() >= 4900);
    assert_eq!(file.metadata().iter().last().unwrap().0, RESERVE_KEY);
    assert!(!recover(&model.path(), Recovery::Undo).unwrap());
}

#[test]
fn cancelled_rebuilds_keep_the_old_file() {
    let model = Model::new();
    let before = std::fs::read(model.path()).unwrap();
    let result = edit_header(&model.path(), 0, &|_: u64| ControlFlow::Break(()), |draft| {
        draft.metadata.set("general.name", "x".repeat(500));
        Ok::<_, Error>(())
    });
    assert!(matches!(result, Err(Error::Interrupted)));
    assert_eq!(std::fs::read(model.path()).unwrap(), before);
    assert_eq!(std::fs::read_dir(model.dir.path()).unwrap().count(), 1);
}

/// Windows replaces no file that a reader has mapped.
#[cfg(windows)]
#[test]
fn mapped_files_are_not_replaced() {
    let model = Model::new();
    let before = std::fs::read(model.path()).unwrap();
    let map = LocalFile::open(&model.path()).unwrap();
    let edited = edit_header(&model.path(), 0, &(), |draft| {
        draft.metadata.set("general.name", "Another name");
        Ok::<_, Error>(())
    });
    let message = edited.unwrap_err().to_string();
    assert!(message.contains("another program has it open; close that program"), "{message}");
    drop(map);
    assert_eq!(std::fs::read(model.path()).unwrap(), before);
    assert_eq!(std::fs::read_dir(model.dir.path()).unwrap().count(), 1);
}

/// While a reader has the file open, it is rebuilt beside the old one.
#[cfg(unix)]
#[test]
fn open_readers_keep_the_old_file() {
    let model = Model::new();
    let same_length = "Another one with a name like that.";
    let before = std::fs::read(model.path()).unwrap();
    let old = gguf_store::Model::open(&model.path()).unwrap();
    let map = LocalFile::open(&model.path()).unwrap();
    let saved = model.edit(0, |draft| draft.metadata.set("general.name", same_length));
    assert_eq!(saved, EditOutcome::Rebuilt);
    assert_eq!(**map.mapped(), *before);
    assert_eq!(old.metadata().str("general.name"), Some("A model with a name of some length"));
    let mut data = [0; 4];
    old.tensors()[1].read_at(&mut data, 0).unwrap();
    assert_eq!(data, [64, 65, 66, 67]);
    model.check(same_length, ["a.weight", "b.weight"]);
}

#[test]
fn read_only_files_are_not_edited() {
    let model = Model::new();
    let before = std::fs::read(model.path()).unwrap();
    let mut permissions = model.path().metadata().unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(model.path(), permissions).unwrap();
    // In place and rebuilt.
    for name in ["Another one with a name like that.".to_owned(), "x".repeat(500)] {
        let result = edit_header(&model.path(), 0, &(), |draft| {
            draft.metadata.set("general.name", name);
            Ok::<_, Error>(())
        });
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Environment { .. }));
        assert!(error.to_string().ends_with("the file is read-only"), "{error}");
    }
    assert_eq!(std::fs::read(model.path()).unwrap(), before);
}

/// Concurrent editors lose no update, in place or rebuilt.
#[test]
fn concurrent_editors_lose_no_update() {
    let model = Model::new();
    model.edit(4000, |draft| draft.metadata.set("general.name", "A name"));
    std::thread::scope(|scope| {
        for editor in 0..4 {
            let path = model.path();
            scope.spawn(move || {
                for i in 0..10 {
                    // Every third value does not fit.
                    let value = "x".repeat(if i % 3 == 0 { 5000 } else { 5 });
                    edit_header(&path, 4000, &(), |draft| {
                        draft.metadata.set(format!("editor{editor}.key{i}"), value);
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
    });
    model.check("A name", ["a.weight", "b.weight"]);
    let map = LocalFile::open(&model.path()).unwrap();
    let file = Gguf::read(map.mapped()).unwrap();
    let keys = file.metadata().iter().filter(|(key, _)| key.starts_with("editor"));
    assert_eq!(keys.count(), 40);
}

#[test]
fn replacing_a_file_takes_the_edit_lock() {
    let model = Model::new();
    let lock = EditLock::take(&model.path()).unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            model.edit(0, |draft| draft.metadata.set("general.url", "somewhere"));
            done.send(()).unwrap();
        });
        assert!(wait.recv_timeout(std::time::Duration::from_millis(200)).is_err());
        drop(lock);
    });
    model.check("A model with a name of some length", ["a.weight", "b.weight"]);
}
