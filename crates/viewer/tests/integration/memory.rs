//! Memory use of the viewer with huge models.
#![cfg(target_os = "linux")]

use gguf::{Header, RawHeader, Shape, TensorInfo, TensorType, write_header};

use crate::viewer::{Viewer, path_str};

/// Name of the environment variable that marks the child process of the test.
const CHILD: &str = "GGUF_VIEWER_MEMORY_TEST";

/// Returns the peak resident set size of this process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Opens a sparse model of 40 GB. The peak belongs to a whole process, so the test runs itself in a child process.
#[test]
fn memory_does_not_grow_with_the_model() {
    if std::env::var_os(CHILD).is_none() {
        let test = std::env::current_exe().unwrap();
        let arguments = ["memory::memory_does_not_grow_with_the_model", "--exact", "--nocapture"];
        let status = std::process::Command::new(test).args(arguments).env(CHILD, "1").status();
        assert!(status.unwrap().success());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.gguf");
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "test");
    for (name, shape) in
        [("wide", &[1 << 32, 1][..]), ("high", &[1, 1 << 30]), ("square", &[65536, 65536])]
    {
        let (shape, tensor_type) = (Shape::new(shape).unwrap(), TensorType::F32);
        draft.tensors.push(TensorInfo {
            name: name.into(),
            shape,
            tensor_type,
            offset: 0,
            opaque_len: None,
        });
    }
    draft.lay_out().unwrap();
    let header = Header::new(draft).unwrap();
    let bytes = write_header(&header).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(header.file_len(bytes.len()).unwrap()).unwrap();

    let viewer = Viewer::open(&[path_str(&path)]);
    let before = peak_memory();
    for n in 0..3 {
        let levels = viewer.json(&format!("models/0/tensor?n={n}"))["levels"].as_u64().unwrap();
        for level in (0..levels).rev().step_by(4) {
            let tile = viewer.get(&format!("models/0/tensor/tile?n={n}&level={level}"));
            let read: u64 = tile.header("tile-read").parse().unwrap();
            assert!(tile.status == 200 && read <= 32 << 20, "{n} {level}: {read}");
        }
        let found = viewer.json(&format!("models/0/tensor/statistics?n={n}"));
        assert_eq!(found["exact"], false);
        assert!(found["rows"]["min"].as_array().unwrap().len() <= 1024);
    }
    let grown = peak_memory() - before;
    assert!(grown < 300 << 20, "{grown} bytes");
}
