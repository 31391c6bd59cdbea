//! Work that somebody ends.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use gguf::{Error, Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use gguf_inspect::{HashOptions, diff, hash, scan};
use gguf_store::Model;

/// Three tensors of 4 MiB each, all elements alike.
fn model(path: &Path, value: f32) -> Model {
    let mut draft = RawHeader::default();
    for name in ["a", "b", "c"] {
        let (name, shape) = (name.to_owned(), Shape::new(&[1 << 20]).unwrap());
        draft.tensors.push(TensorInfo {
            name,
            shape,
            tensor_type: TensorType::F32,
            offset: 0,
            opaque_len: None,
        });
    }
    draft.lay_out().unwrap();
    let mut file = write_header(&Header::new(draft).unwrap()).unwrap();
    file.extend(value.to_le_bytes().repeat(3 << 20));
    fs::write(path, file).unwrap();
    Model::open(path).unwrap()
}

#[test]
fn hashing_scanning_and_comparing_end_when_they_are_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (model(&dir.path().join("a"), 1.0), model(&dir.path().join("b"), 2.0));
    let seen = AtomicU64::new(0);
    let stop = |bytes| {
        seen.fetch_add(bytes, Ordering::Relaxed);
        ControlFlow::Break(())
    };
    let go_on = |_| ControlFlow::Continue(());
    let interrupted = |result: Result<(), Error>| matches!(result, Err(Error::Interrupted));
    let options = HashOptions::default();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    one.install(|| {
        let mut lines = 0;
        let mut sink = |_| {
            lines += 1;
            ControlFlow::Continue(())
        };
        assert!(interrupted(hash(&a, "a", &options, &stop, &mut sink)));
        assert_eq!(lines, 0);
        assert!(interrupted(scan(&a, &stop).map(drop)));
        assert!(interrupted(diff(&a, &a, &stop).map(drop)));
        assert!(interrupted(diff(&a, &b, &stop).map(drop)));
    });
    // Four times a piece, and not four times twelve megabytes.
    assert!(seen.into_inner() < 12 << 20);

    assert!(scan(&a, &go_on).is_ok() && diff(&a, &b, &go_on).is_ok());
    assert!(hash(&a, "a", &options, &go_on, &mut |_| ControlFlow::Continue(())).is_ok());
}
