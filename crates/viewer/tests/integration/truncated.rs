//! Damaged files that can be shown: incomplete headers and tensor data, overlapping tensors, duplicate keys.

use gguf::TensorType;
use serde_json::{Value as Json, json};

use crate::viewer::{Viewer, demo, file, path_str};

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
    assert_eq!(model["damaged"], true);
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
fn a_truncated_header_shows_its_complete_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let whole = gguf::Gguf::read(&bytes.clone().into()).unwrap();
    let tokens =
        whole.metadata().iter().position(|(key, _)| key == "tokenizer.ggml.tokens").unwrap();
    // Within the tokens; within the second tensor of the directory.
    let cuts = [
        (whole.spans().entries[tokens].value + 100, tokens, 0, whole.spans().entries[tokens].start),
        (whole.spans().tensors[1] + 5, whole.metadata().len(), 1, whole.spans().tensors[1]),
    ];
    for (cut, keys, tensors, end) in cuts {
        std::fs::write(&path, &bytes[..cut as usize]).unwrap();
        let viewer = Viewer::open(&[&path]);
        let model = &viewer.json("models")["models"][0];
        let flags = ["readable", "damaged", "truncated", "header_complete", "editable"]
            .map(|key| &model[key]);
        assert_eq!(flags, [true, true, true, false, false], "{model}");
        assert_eq!(model["error"]["code"], "truncated");
        assert_eq!(viewer.json("models/0/keys")["total"], keys);
        assert_eq!(viewer.json("models/0/summary")["architecture"], "llama");
        let shown = viewer.json("models/0/tensors");
        assert_eq!(shown["tensors"].as_array().unwrap().len(), tensors);
        for tensor in shown["tensors"].as_array().unwrap() {
            assert_eq!(tensor["missing_bytes"], tensor["bytes"]);
        }
        let map = viewer.json("models/0/map");
        let last = map["files"][0]["spans"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["kind"], &last["start"], &last["end"]),
            (&"unreadable".into(), &end.into(), &cut.into())
        );
        let spans = viewer.json(&format!("models/0/spans?offset={}&length=20", end - 10));
        assert_eq!(spans["spans"].as_array().unwrap().last().unwrap()["kind"], "unreadable");
        assert_eq!(viewer.get("models/0/tokens").status, if tensors == 0 { 422 } else { 200 });
        assert_eq!(viewer.get("models/0/findings").status, 200);
    }
    // Without one complete key there is nothing to show.
    std::fs::write(&path, &bytes[..30]).unwrap();
    let viewer = Viewer::open(&[&path]);
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["readable"], &model["truncated"]), (&false.into(), &false.into()));
    viewer.assert_error("models/0/summary", 422, "truncated");
}

/// Replaces the only occurrence of `from` by `to`, which has the same length.
fn replace(bytes: &mut [u8], from: &str, to: &[u8]) {
    let at: Vec<_> =
        (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from.as_bytes())).collect();
    assert_eq!((at.len(), from.len()), (1, to.len()), "{from}");
    bytes[at[0]..at[0] + to.len()].copy_from_slice(to);
}

#[test]
fn duplicate_keys_are_shown_and_marked() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let mut bytes = std::fs::read(&path).unwrap();
    replace(&mut bytes, "llama.context_length", b"general.architecture");
    std::fs::write(&path, bytes).unwrap();
    let viewer = Viewer::open(&[&path]);
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["readable"], &model["damaged"]), (&true.into(), &true.into()), "{model}");
    assert_eq!((&model["truncated"], &model["editable"]), (&false.into(), &false.into()));
    assert_eq!(model["error"]["code"], "key-duplicate");
    let keys = viewer.json("models/0/keys?search=general.architecture");
    let keys = keys["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        assert_eq!(key["damage"], "the key occurs twice");
        // Each entry has its own value and bytes.
        let shown = viewer.json(&format!("models/0/key?n={}", key["n"]));
        assert_eq!((&shown["text"], &shown["span"]), (&key["text"], &key["span"]));
    }
    assert_ne!(keys[0]["span"], keys[1]["span"]);
    assert_eq!(viewer.json("models/0/keys?search=general.name")["keys"][0]["damage"], Json::Null);
    // Edits and everything that needs a valid file still refuse it.
    let edit = json!({ "preview": false, "set": [{ "key": "general.name", "value": "x" }] });
    assert_ne!(viewer.post("models/0/edit", &edit).status, 200);
    assert_eq!(viewer.get("models/0/report").status, 200);
}

#[test]
fn overlapping_tensors_are_shown_and_marked() {
    let dir = tempfile::tempdir().unwrap();
    let shape: &[u64] = &[32, 32];
    let tensors: Vec<_> =
        ["first", "second", "third"].map(|name| (name, shape, TensorType::F32)).into();
    let path = file(&dir.path().join("overlap.gguf"), &tensors);
    let mut bytes = std::fs::read(&path).unwrap();
    // The offset follows the name, the number of dimensions, both of them, and the type.
    let name = bytes.windows(6).position(|name| name == b"second").unwrap();
    let offset = name + 6 + 4 + 2 * 8 + 4;
    bytes[offset..offset + 8].copy_from_slice(&2048u64.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let viewer = Viewer::open(&[path_str(&path)]);
    let model = &viewer.json("models")["models"][0];
    assert_eq!((&model["readable"], &model["damaged"]), (&true.into(), &true.into()), "{model}");
    let tensors = viewer.json("models/0/tensors");
    let damage: Vec<_> =
        (0..3).map(|n| tensors["tensors"][n]["damage"].as_str().unwrap_or("")).collect();
    assert_eq!(damage, ["its data overlaps that of second", "its data overlaps that of first", ""]);
    // All data can be read, and the regions cover the file.
    for n in 0..3 {
        viewer.json(&format!("models/0/tensor/statistics?n={n}"));
    }
    let map = viewer.json("models/0/map");
    let spans = map["files"][0]["spans"].as_array().unwrap();
    assert!(spans.windows(2).all(|pair| pair[0]["end"] == pair[1]["start"]), "{spans:?}");
    assert_eq!(spans.last().unwrap()["end"], model["bytes"]);
}
