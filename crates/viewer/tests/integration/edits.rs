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
    let new = json!({ "type": "STRING", "value": "Another name", "text": "\"Another name\"" });
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
