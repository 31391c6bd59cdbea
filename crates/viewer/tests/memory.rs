//! The memory of the viewer does not grow with the model. A test program of its own: memory is that of a process.
#![cfg(target_os = "linux")]

#[allow(dead_code)] // Other tests want more of it.
#[path = "viewer/site.rs"]
mod site;

use gguf::{Header, RawHeader, Shape, TensorInfo, TensorType, write_header};
use site::{Site, word};

/// The most memory that this process ever had, in bytes.
fn most() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// 40 GB, all of them holes.
#[test]
fn a_model_of_any_size_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.gguf");
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "test");
    for (name, shape) in
        [("wide", &[1 << 32, 1][..]), ("high", &[1, 1 << 30]), ("square", &[65536, 65536])]
    {
        let (shape, tensor_type) = (Shape::new(shape).unwrap(), TensorType::F32);
        draft.tensors.push(TensorInfo { name: name.into(), shape, tensor_type, offset: 0 });
    }
    draft.lay_out().unwrap();
    let header = Header::new(draft).unwrap();
    let bytes = write_header(&header).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(header.file_len(bytes.len()).unwrap()).unwrap();

    let site = Site::of(&[word(&path)]);
    let before = most();
    for n in 0..3 {
        let levels = site.json(&format!("models/0/tensor?n={n}"))["levels"].as_u64().unwrap();
        for level in (0..levels).rev().step_by(4) {
            let tile = site.get(&format!("models/0/tensor/tile?n={n}&level={level}"));
            let read: u64 = tile.header("tile-read").parse().unwrap();
            assert!(tile.status == 200 && read <= 32 << 20, "{n} {level}: {read}");
        }
        let found = site.json(&format!("models/0/tensor/statistics?n={n}"));
        assert_eq!(found["exact"], false);
        assert!(found["rows"]["min"].as_array().unwrap().len() <= 1024);
    }
    let grown = most() - before;
    assert!(grown < 300 << 20, "{grown} bytes");
}
