//! Files that change, shrink or are deleted while they are open.

use std::fs::File;

use serde_json::json;

use crate::viewer::{Viewer, demo};

#[test]
fn a_truncated_file_is_reported_and_does_not_stop_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let before = viewer.json("models/0/state");
    assert_eq!((&before["changed"], &before["files"][0]["state"]), (&false.into(), &"same".into()));
    // Truncates the header with the vocabulary, and the data.
    File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    for address in [
        "summary",
        "findings",
        "keys",
        "key?name=tokenizer.ggml.tokens",
        "tensors",
        "tensor/tile?n=0",
        "tensor/statistics?n=0",
        "tokens",
        "map",
        "bytes?offset=5000000&length=10",
        "spans",
        "graph",
        "memory",
        "merges",
        "tokenizer",
    ] {
        viewer.assert_error(&format!("models/0/{address}"), 409, "file-changed");
    }
    viewer.post("models/0/tokenize", &json!({ "text": "a" })).assert_error(409, "file-changed");
    viewer.post("models/0/edit", &json!({})).assert_error(409, "file-changed");
    viewer.assert_error("compare/0/0/keys", 409, "file-changed");
    let state = viewer.json("models/0/state");
    assert_eq!((&state["changed"], &state["files"][0]["bytes"]), (&true.into(), &100.into()));
    // What is left, one key, is opened with its error.
    let reloaded = viewer.post("models/0/reload", &json!({})).ok();
    assert_eq!(
        (&reloaded["header_complete"], &reloaded["error"]["code"]),
        (&false.into(), &"truncated".into())
    );
    assert_eq!(viewer.json("models/0/findings")["findings"][0]["code"], "truncated");
}

#[test]
fn a_replaced_file_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let other = dir.path().join("other.gguf");
    crate::viewer::file(&other, &[("a.weight", &[4, 4], gguf::TensorType::F32)]);
    std::fs::rename(&other, &path).unwrap();
    let error = viewer.assert_error("models/0/tensors", 409, "file-changed");
    assert!(
        error["error"]["message"].as_str().unwrap().contains("has changed since it was opened")
    );
    let model = viewer.post("models/0/reload", &json!({})).ok();
    assert_eq!(model["tensor_count"], 1);
    assert_eq!(viewer.json("models/0/tensors")["tensors"][0]["name"], "a.weight");
    std::fs::remove_file(&path).unwrap();
    let error = viewer.assert_error("models/0/tensors", 409, "file-changed");
    assert!(error["error"]["message"].as_str().unwrap().ends_with("was deleted"), "{error}");
    assert_eq!(viewer.json("models/0/state")["files"][0]["state"], "gone");
    // Reopening fails, and the old state is kept.
    assert_eq!(viewer.post("models/0/reload", &json!({})).status, 500);
    assert_eq!(viewer.json("models/0/state")["changed"], true);
}
