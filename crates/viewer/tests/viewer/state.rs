//! Files that change, shrink or go while they are shown.

use std::fs::File;

use serde_json::json;

use crate::site::{Site, demo};

#[test]
fn a_file_that_is_shortened_is_told_and_does_not_end_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let before = site.json("models/0/state");
    assert_eq!((&before["changed"], &before["files"][0]["state"]), (&false.into(), &"same".into()));
    // The vocabulary, which is in the header, as well as the data.
    File::options().write(true).open(&word).unwrap().set_len(100).unwrap();
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
        site.fails(&format!("models/0/{address}"), 409, "file-changed");
    }
    site.post("models/0/tokenize", &json!({ "text": "a" })).is_error(409, "file-changed");
    site.post("models/0/edit", &json!({})).is_error(409, "file-changed");
    site.fails("compare/0/0/keys", 409, "file-changed");
    let state = site.json("models/0/state");
    assert_eq!((&state["changed"], &state["files"][0]["bytes"]), (&true.into(), &100.into()));
    // What is there now cannot be read, and can be looked at.
    let reloaded = site.post("models/0/reload", &json!({})).ok();
    assert_eq!(
        (&reloaded["readable"], &reloaded["error"]["code"]),
        (&false.into(), &"truncated".into())
    );
    assert_eq!(site.json("models/0/findings")["findings"][0]["code"], "truncated");
}

#[test]
fn another_file_of_the_same_name_is_opened_anew() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let other = dir.path().join("other.gguf");
    crate::site::file(&other, &[("a.weight", &[4, 4], gguf::TensorType::F32)]);
    std::fs::rename(&other, &word).unwrap();
    let error = site.fails("models/0/tensors", 409, "file-changed");
    assert!(
        error["error"]["message"].as_str().unwrap().contains("has changed since it was opened")
    );
    let model = site.post("models/0/reload", &json!({})).ok();
    assert_eq!(model["tensor_count"], 1);
    assert_eq!(site.json("models/0/tensors")["tensors"][0]["name"], "a.weight");
    std::fs::remove_file(&word).unwrap();
    let error = site.fails("models/0/tensors", 409, "file-changed");
    assert!(error["error"]["message"].as_str().unwrap().ends_with("is gone"), "{error}");
    assert_eq!(site.json("models/0/state")["files"][0]["state"], "gone");
    // It cannot be opened, and what there was is kept.
    assert_eq!(site.post("models/0/reload", &json!({})).status, 500);
    assert_eq!(site.json("models/0/state")["changed"], true);
}
