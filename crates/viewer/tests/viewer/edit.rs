//! Changes of keys: previewed, done, refused.

use gguf_kit::open;
use serde_json::json;

use crate::site::{Site, demo};

#[test]
fn a_change_is_previewed_and_then_done() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let before = std::fs::read(&word).unwrap();
    let site = Site::of(&[&word]);
    let mut change = json!({
        "set": [
            { "key": "general.name", "value": "Another name" },
            { "key": "my.number", "type": "u16", "value": "7" },
        ],
        "rename": [["general.basename", "my.basename"]],
    });
    let preview = site.post("models/0/edit", &change).ok();
    assert_eq!((&preview["schema"], &preview["saved"]), (&"gguf-kit/edit/1".into(), &json!(null)));
    let keys: Vec<_> = preview["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["general.name", "my.basename", "my.number", "general.basename"], "{preview}");
    assert_eq!(preview["keys"][0]["b"], "\"Another name\"");
    assert!(std::fs::read(&word).unwrap() == before);

    change["preview"] = false.into();
    let done = site.post("models/0/edit", &change).ok();
    assert_eq!(done["saved"], "rebuilt");
    // It is open anew: no conflict, and the new values.
    assert_eq!(site.json("models/0/key?name=general.name")["value"], "Another name");
    assert_eq!(site.json("models/0/key?name=my.number")["type"], "UINT16");
    assert_eq!(open(&word).unwrap().model().metadata().str("general.name"), Some("Another name"));

    // The file has room now, and nobody here keeps it open: nothing but the header is written.
    let again = json!({ "preview": false, "set": [{ "key": "general.name", "value": "Third" }] });
    assert_eq!(site.post("models/0/edit", &again).ok()["saved"], "in-place");
    assert_eq!(site.post("models/0/edit", &again).ok()["saved"], "unchanged");
    assert_eq!(site.json("models/0/summary")["name"], "Third");
    assert_eq!(site.json("models/0/state")["changed"], false);
}

#[test]
fn what_gguf_edit_refuses_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let before = std::fs::read(&word).unwrap();
    let site = Site::of(&[&word]);
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
            site.post("models/0/edit", &wrong).is_error(422, "edit-refused");
        }
    }
    site.post("models/0/edit", &json!({ "special_tokens": [{ "role": "eos" }] }))
        .is_error(400, "request-invalid");
    assert!(std::fs::read(&word).unwrap() == before);
    // What would become wrong is said before.
    let harm = site.post("models/0/edit", &json!({ "remove": ["llama.block_count"] })).ok();
    assert!(!harm["findings"].as_array().unwrap().is_empty(), "{harm}");
    let fine =
        site.post("models/0/edit", &json!({ "special_tokens": [{ "role": "eos", "id": 2 }] })).ok();
    assert!(fine["findings"].as_array().unwrap().is_empty(), "{fine}");
}
