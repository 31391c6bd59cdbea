//! Malicious files get a response or an error, never a crash.

use std::time::{Duration, Instant};

use gguf::{Array, Header, RawHeader, write_header};
use serde_json::{Value as Json, json};

use crate::viewer::{Viewer, demo, path_str, reference_data};

const READABLE: &[&str] = &[
    "summary",
    "memory",
    "graph",
    "keys?limit=1000",
    "key?n=0",
    "tensors",
    "tensor?n=0",
    "tensor/tile?n=0",
    "tensor/statistics?n=0",
    "tensor/rows?n=0",
    "tensor/block?n=0&index=0",
    "tokenizer",
    "tokens?search=a",
    "merges",
    "templates",
];

/// Every endpoint responds in time for every malicious file, with a document or an error.
#[test]
fn every_endpoint_responds_for_every_hostile_file() {
    let Some(dir) = reference_data().map(|dir| dir.join("hostile")) else { return };
    let cases: Json =
        serde_json::from_slice(&std::fs::read(dir.join("cases.json")).unwrap()).unwrap();
    let good = tempfile::tempdir().unwrap();
    let good = demo(good.path());
    let mut unreadable = 0;
    for case in cases.as_array().unwrap() {
        let name = case["file"].as_str().unwrap();
        let path = dir.join(name);
        let viewer = Viewer::open(&[path_str(&path), &good]);
        let started = Instant::now();
        let model = &viewer.json("models")["models"][0];
        let findings = viewer.json("models/0/findings");
        let errors = findings["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["severity"] == "error");
        if case["expect"] == "reject" {
            assert!(errors.count() > 0, "{name}");
        }
        let bytes = std::fs::metadata(&path).unwrap().len();
        let spans = viewer.json("models/0/map")["files"][0]["spans"].clone();
        let end = spans.as_array().unwrap().last().map_or(0, |span| span["end"].as_u64().unwrap());
        assert_eq!(end, bytes, "{name}");
        assert_eq!(viewer.get("models/0/spans?length=16384").status, 200, "{name}");
        assert_eq!(viewer.get("models/0/bytes?length=65536").status, 200, "{name}");
        unreadable += u32::from(model["readable"] == false);
        for address in READABLE {
            let reply = viewer.get(&format!("models/0/{address}"));
            match model["readable"] == true {
                true => assert!(
                    [200, 400, 404, 422].contains(&reply.status),
                    "{name} {address}: {}",
                    reply.text()
                ),
                false => drop(reply.assert_error(422, model["error"]["code"].as_str().unwrap())),
            }
        }
        for address in ["keys", "tensors", "tensor?n=0", "tile?n=0"] {
            let reply = viewer.get(&format!("compare/0/1/{address}"));
            assert!([200, 404, 422].contains(&reply.status), "{name} {address}: {}", reply.text());
        }
        let reply = viewer.post("models/0/tokenize", &json!({ "text": "a <b> \u{1f600}" }));
        assert!([200, 422].contains(&reply.status), "{name}: {}", reply.text());
        let reply = viewer.post("models/0/template", &json!({ "messages": [] }));
        assert!([200, 404, 422].contains(&reply.status), "{name}: {}", reply.text());
        assert!(started.elapsed() < Duration::from_secs(60), "{name}");
    }
    assert!(unreadable > 20, "{unreadable}");
}

/// Names and values of megabytes are truncated, and their full lengths are reported.
#[test]
fn long_texts_are_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let mut draft = RawHeader::default();
    draft.metadata.set("general.architecture", "llama");
    draft.metadata.set("k".repeat(60_000), "<img src=x onerror=alert(1)>".repeat(100_000));
    draft.metadata.set("tokenizer.ggml.model", "llama");
    let tokens = ["\u{1f600}".repeat(500_000), "<script>".into()];
    draft.metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    draft.metadata.set("mine.numbers", Array::from(&[u64::MAX; 3][..]));
    draft.metadata.set("mine.large", u64::MAX);
    let path = dir.path().join("long.gguf");
    std::fs::write(&path, write_header(&Header::new(draft).unwrap()).unwrap()).unwrap();
    let viewer = Viewer::open(&[path_str(&path)]);
    let reply = viewer.get("models/0/keys");
    assert!(reply.body.len() < 20_000, "{}", reply.body.len());
    let key = &reply.ok()["keys"][1];
    assert_eq!((&key["name_bytes"], &key["text_bytes"]), (&60_000.into(), &2_800_000.into()));
    assert_eq!(key["name"].as_str().unwrap().len(), 1000);
    assert_eq!(key["value"].as_str().unwrap().chars().count(), 1000);
    let part = viewer.json("models/0/key?n=1&offset=2799990&limit=100");
    assert_eq!(
        part["string"],
        json!({ "text": "=alert(1)>", "bytes": 2_800_000, "offset": 2_799_990 })
    );
    let reply = viewer.get("models/0/tokens");
    assert!(reply.body.len() < 30_000, "{}", reply.body.len());
    let tokens = reply.ok();
    assert_eq!(
        (&tokens["tokens"][0]["text_bytes"], &tokens["tokens"][1]["text"]),
        (&2_000_000.into(), &"<script>".into())
    );
    assert!(viewer.get("models/0/spans?length=16384").body.len() < 20_000);
    // Integers that F64 cannot represent are strings.
    assert_eq!(viewer.json("models/0/key?name=mine.large")["value"], "18446744073709551615");
    let numbers = viewer.json("models/0/key?name=mine.numbers");
    assert_eq!(numbers["array"]["elements"][2]["value"], "18446744073709551615");
}
