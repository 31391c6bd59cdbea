//! Files whose header is intact, but whose tensor data is incomplete.

use crate::viewer::{Viewer, demo};

#[test]
fn a_truncated_file_shows_its_header() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let cut = bytes.len() / 2;
    std::fs::write(&path, &bytes[..cut]).unwrap();
    let viewer = Viewer::open(&[&path]);
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["readable"], &model["truncated"]), (&true.into(), &true.into()), "{model}");
    assert_eq!((&model["editable"], &model["error"]["code"]), (&false.into(), &"truncated".into()));
    assert_eq!(viewer.json("models/0/summary")["architecture"], "llama");
    assert!(viewer.json("models/0/keys")["total"].as_u64().unwrap() > 20);
    assert_eq!(viewer.json("models/0/tokens?limit=1")["total"], 2048);
    // Regions end with the file.
    let map = viewer.json("models/0/map");
    let last = map["files"][0]["spans"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["end"], cut);

    let tensors = viewer.json("models/0/tensors");
    let (mut whole, mut missing) = (0, 0);
    for tensor in tensors["tensors"].as_array().unwrap() {
        let (offset, size) =
            (tensor["offset"].as_u64().unwrap(), tensor["bytes"].as_u64().unwrap());
        let expected = (offset + size).saturating_sub(cut as u64).min(size);
        assert_eq!(tensor["missing_bytes"], expected, "{tensor}");
        let rows = format!("models/0/tensor/rows?n={}", tensor["n"]);
        match expected {
            0 => {
                viewer.json(&rows);
                whole += 1;
            }
            // A read that needs the last row fails.
            _ => {
                let all = tensor["shape"].as_array().unwrap();
                let last = all.get(1).map_or(0, |rows| rows.as_u64().unwrap() - 1);
                viewer.assert_error(&format!("{rows}&start={last}"), 422, "truncated");
                missing += 1;
            }
        }
    }
    assert!(whole > 0 && missing > 0, "{whole} {missing}");
}

#[test]
fn a_truncated_header_is_still_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..5000]).unwrap();
    let viewer = Viewer::open(&[&path]);
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["readable"], &model["truncated"]), (&false.into(), &false.into()));
    viewer.assert_error("models/0/summary", 422, "truncated");
}
