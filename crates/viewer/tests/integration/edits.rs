//! Edits of metadata: preview, writing, rejection.

use gguf_kit::open;
use serde_json::json;

use crate::viewer::{Viewer, demo};

#[test]
fn preview_writes_nothing_and_edit_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let before = std::fs::read(&path).unwrap();
    let viewer = Viewer::open(&[&path]);
    let mut change = json!({
        "set": [
            { "key": "general.name", "value": "Another name" },
            { "key": "my.number", "type": "u16", "value": "7" },
        ],
        "rename": [["general.basename", "my.basename"]],
    });
    let preview = viewer.post("models/0/edit", &change).ok();
    assert_eq!((&preview["schema"], &preview["saved"]), (&"gguf-kit/edit/3".into(), &json!(null)));
    let keys: Vec<_> = preview["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["general.name", "my.basename", "my.number", "general.basename"], "{preview}");
    let text = "\"Another name\"";
    let new = json!({ "type": "STRING", "value": "Another name", "text": text, "label": null });
    assert_eq!(preview["keys"][0]["b"], new);
    assert!(std::fs::read(&path).unwrap() == before);

    change["preview"] = false.into();
    let done = viewer.post("models/0/edit", &change).ok();
    assert_eq!(done["saved"], "rebuilt");
    // The viewer has reopened the file: no conflict, and the new values.
    assert_eq!(viewer.json("models/0/key?name=general.name")["value"], "Another name");
    assert_eq!(viewer.json("models/0/key?name=my.number")["type"], "UINT16");
    assert_eq!(open(&path).unwrap().model().metadata().str("general.name"), Some("Another name"));

    // The file has reserved space now: only the header is rewritten.
    let again = json!({ "preview": false, "set": [{ "key": "general.name", "value": "Third" }] });
    assert_eq!(viewer.post("models/0/edit", &again).ok()["saved"], "in-place");
    assert_eq!(viewer.post("models/0/edit", &again).ok()["saved"], "unchanged");
    assert_eq!(viewer.json("models/0/summary")["name"], "Third");
    assert_eq!(viewer.json("models/0/state")["changed"], false);
}

#[test]
fn invalid_edits_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let before = std::fs::read(&path).unwrap();
    let viewer = Viewer::open(&[&path]);
    for wrong in [
        json!({ "remove": ["nothing"] }),
        json!({ "set": [{ "key": "llama.rope.freq_base", "value": "nan" }] }),
        json!({ "set": [{ "key": "llama.context_length", "value": "many" }] }),
        json!({ "set": [{ "key": "a", "type": "u7", "value": "1" }] }),
        json!({ "set": [{ "key": "", "value": "1" }] }),
        json!({ "rename": [["general.name", "general.architecture"]] }),
        json!({ "special_tokens": [{ "role": "eos", "text": "no such token" }] }),
        json!({ "chat_template": "{% for" }),
        json!({ "rename_tensors": [["nothing", "something"]] }),
    ] {
        for preview in [true, false] {
            let mut wrong = wrong.clone();
            wrong["preview"] = preview.into();
            viewer.post("models/0/edit", &wrong).assert_error(422, "edit-refused");
        }
    }
    viewer
        .post("models/0/edit", &json!({ "special_tokens": [{ "role": "eos" }] }))
        .assert_error(400, "request-invalid");
    assert!(std::fs::read(&path).unwrap() == before);
    // The preview lists new findings.
    let harm = viewer.post("models/0/edit", &json!({ "remove": ["llama.block_count"] })).ok();
    assert!(!harm["findings"].as_array().unwrap().is_empty(), "{harm}");
    let fine = viewer
        .post("models/0/edit", &json!({ "special_tokens": [{ "role": "eos", "id": 2 }] }))
        .ok();
    assert!(fine["findings"].as_array().unwrap().is_empty(), "{fine}");
}

#[test]
fn the_preview_states_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let len = |path: &str| std::fs::metadata(path).unwrap().len();
    let text = "x".repeat(5000);
    let edit = |preview: bool, reserve: Option<u64>| {
        let set = json!([{ "key": "general.description", "type": "str", "value": text }]);
        viewer
            .post("models/0/edit", &json!({ "preview": preview, "set": set, "reserve": reserve }))
            .ok()
    };
    // Without a reserve.
    let plain = edit(true, Some(0))["write"].clone();
    assert_eq!((&plain["outcome"], &plain["reserve"]), (&"rebuilt".into(), &json!([null, null])));
    assert_eq!(plain["file_bytes"][0], len(&path));
    // With one.
    let write = edit(true, None)["write"].clone();
    assert!(write["reserve"][1].as_u64().unwrap() > 60_000, "{write}");
    let done = edit(false, None);
    assert_eq!((&done["saved"], &done["write"]), (&"rebuilt".into(), &write));
    assert_eq!(write["file_bytes"][1], len(&path));
    let reserve = viewer.json("models/0/key?name=gguf_kit.reserve");
    assert_eq!(reserve["count"], write["reserve"][1]);
    // The reserve makes room: the file keeps its length.
    let shorter = json!({ "set": [{ "key": "general.description", "value": "short" }] });
    let write = viewer.post("models/0/edit", &shorter).ok()["write"].clone();
    assert_eq!(
        (&write["outcome"], &write["file_bytes"][0]),
        (&"in-place".into(), &write["file_bytes"][1])
    );
    assert_eq!(edit(true, None)["write"]["outcome"], "unchanged");
}

#[test]
fn a_copy_is_written_beside_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let before = std::fs::read(&path).unwrap();
    let viewer = Viewer::open(&[&path]);
    let copy = |name: &str| {
        let set = json!([{ "key": "general.name", "value": "Copy" }]);
        viewer.post("models/0/edit", &json!({ "preview": false, "copy": name, "set": set }))
    };
    assert_eq!(copy("copy.gguf").ok()["saved"], "copied");
    let made = dir.path().join("copy.gguf");
    assert_eq!(
        open(made.to_str().unwrap()).unwrap().model().metadata().str("general.name"),
        Some("Copy")
    );
    // Nothing is replaced, and nothing is written elsewhere.
    for name in [
        "copy.gguf",
        "demo.gguf",
        "../x.gguf",
        "/tmp/x.gguf",
        "a\\b.gguf",
        "x",
        "..",
        ".gguf/x.gguf",
    ] {
        let reply = copy(name);
        assert!((400..500).contains(&reply.status), "{name}: {} {}", reply.status, reply.text());
    }
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn numbers_have_labels() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let label = |key: &str| viewer.json(&format!("models/0/key?name={key}"))["label"].clone();
    assert_eq!(label("general.file_type"), "F16");
    assert_eq!(label("tokenizer.ggml.eos_token_id"), "</s>");
    assert_eq!(label("llama.block_count"), json!(null));
    let change = json!({ "set": [{ "key": "tokenizer.ggml.eos_token_id", "value": "1" }] });
    let row = viewer.post("models/0/edit", &change).ok()["keys"][0].clone();
    assert_eq!((&row["a"]["label"], &row["b"]["label"]), (&"</s>".into(), &"<s>".into()), "{row}");
}
