//! What a model is, its keys, its findings, its bytes, its graph.

use gguf_kit::summary::Summary;
use gguf_kit::{json, memory, open};
use serde_json::Value as Json;

use crate::site::{Site, demo};

/// The answers are those of the command line.
#[test]
fn documents_are_those_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let opened = open(&word).unwrap();
    let expected = json::summary(&Summary::of(opened.model()), &word, false);
    assert_eq!(site.json("models/0/summary"), json::with_schema("inspect/1", expected));

    let options = memory::Options { context: Some(300), batch: 7, ..Default::default() };
    let expected = json::memory(&memory::Report::of(opened.model(), &options).unwrap());
    assert_eq!(site.json("models/0/memory?context=300&batch=7"), expected);
    site.fails("models/0/memory?kv_type=f64", 400, "request-invalid");
    site.fails("models/0/memory?context=0", 400, "request-invalid");
    assert_eq!(site.get("models/0/memory?context=18446744073709551615").status, 200);

    let found = site.json("models/0/findings");
    assert_eq!(
        (&found["schema"], &found["file"]),
        (&"gguf-kit/check/1".into(), &word.clone().into())
    );
    for finding in found["findings"].as_array().unwrap() {
        assert!(finding["meaning"].is_string() && finding["file_n"] == 0, "{finding}");
    }

    let graph = site.json("models/0/graph?tokens=5");
    assert_eq!(graph["schema"], "gguf-kit/graph/1");
    assert!(graph["operations"].as_array().unwrap().len() > 40 && graph["machine"].is_null());
    let picture = site.get("models/0/graph.svg");
    assert_eq!((picture.status, picture.header("content-type")), (200, "image/svg+xml"));
    site.fails("models/0/graph?tokens=18446744073709551615", 400, "request-invalid");
}

#[test]
fn models_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let mut options = crate::site::options(&[&word]);
    options.original = Some(word.clone());
    let site = Site::with(options);
    let all = site.json("models");
    assert_eq!(all["api"], 1);
    let models = all["models"].as_array().unwrap();
    let model = &models[0];
    assert_eq!(
        (&model["id"], &model["source"], &model["far"]),
        (&0.into(), &word.clone().into(), &false.into())
    );
    assert_eq!(model["bytes"], std::fs::metadata(&word).unwrap().len());
    assert_eq!((&model["original"], &model["editable"]), (&1.into(), &true.into()));
    assert_eq!((models.len(), &models[1]["original"]), (2, &Json::Null));
    assert_eq!(
        model["tensor_count"],
        site.json("models/0/tensors")["tensors"].as_array().unwrap().len()
    );
}

#[test]
fn keys_have_values_places_and_meanings() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let bytes = std::fs::read(&word).unwrap();
    let opened = open(&word).unwrap();
    let metadata = opened.model().metadata();
    let all = site.json("models/0/keys?limit=1000");
    assert_eq!((&all["total"], &all["found"]), (&metadata.len().into(), &metadata.len().into()));
    let keys = all["keys"].as_array().unwrap();
    for ((n, (name, value)), key) in metadata.iter().enumerate().zip(keys) {
        assert_eq!((&key["n"], &key["name"]), (&n.into(), &name.into()));
        assert_eq!(key["type"], value.value_type().name());
        // The entry begins with the length of the key, and the value with what it is.
        let [start, end] = [0, 1].map(|i| key["span"][i].as_u64().unwrap() as usize);
        assert_eq!(&bytes[start + 8..start + 8 + name.len()], name.as_bytes());
        let at = key["value_start"].as_u64().unwrap() as usize;
        assert!(start < at && at < end);
        if let Some(number) = value.to_u64() {
            assert_eq!(key["value"], number);
        }
    }
    let found = site.json("models/0/keys?search=ROPE");
    assert_eq!(found["found"], 2, "{found}");
    assert!(found["keys"][0]["documentation"].as_str().unwrap().len() > 10);
    let one = site.json("models/0/keys?offset=3&limit=1");
    assert_eq!(one["keys"], Json::Array(vec![keys[3].clone()]));

    let tokens = site.json("models/0/key?name=tokenizer.ggml.tokens&offset=300&limit=2");
    let expected: Vec<_> = metadata
        .array("tokenizer.ggml.tokens")
        .unwrap()
        .strings()
        .unwrap()
        .skip(300)
        .take(2)
        .collect();
    let elements = tokens["array"]["elements"].as_array().unwrap();
    assert_eq!(elements.len(), 2);
    assert_eq!(
        (&elements[0]["i"], elements[0]["value"].as_str().unwrap().as_bytes()),
        (&300.into(), expected[0])
    );
    let by_number = site.json(&format!("models/0/key?n={}&offset=300&limit=2", tokens["n"]));
    assert_eq!(by_number, tokens);
    site.fails("models/0/key?name=nothing", 404, "name-not-found");
    site.fails("models/0/key?n=18446744073709551615", 404, "name-not-found");
    site.fails("models/0/key?n=1&name=a", 400, "request-invalid");
    site.fails("models/0/keys?limit=1001", 400, "request-invalid");
    assert_eq!(site.json("models/0/keys?offset=18446744073709551615")["keys"], Json::Array(vec![]));
}

/// The map and the names of spans leave nothing out, and bytes are those of the file.
#[test]
fn a_file_is_told_byte_by_byte() {
    let dir = tempfile::tempdir().unwrap();
    let word = demo(dir.path());
    let site = Site::of(&[&word]);
    let bytes = std::fs::read(&word).unwrap();
    let map = site.json("models/0/map");
    let file = &map["files"][0];
    let spans = file["spans"].as_array().unwrap();
    assert_eq!(
        (&file["bytes"], &file["version"], &file["order"]),
        (&bytes.len().into(), &3.into(), &"little".into())
    );
    let mut end = 0;
    for span in spans {
        assert_eq!(span["start"], end);
        end = span["end"].as_u64().unwrap();
    }
    assert_eq!(end, bytes.len() as u64);
    let tensors = site.json("models/0/tensors");
    let of_tensors: Vec<_> = spans.iter().filter(|span| span["kind"] == "tensor").collect();
    for span in &of_tensors {
        let tensor = &tensors["tensors"][span["n"].as_u64().unwrap() as usize];
        assert_eq!((&span["start"], &tensor["file"]), (&tensor["offset"], &0.into()));
    }
    assert_eq!(of_tensors.len(), tensors["tensors"].as_array().unwrap().len());

    let part = site.get("models/0/bytes?offset=10&length=50");
    assert_eq!((part.status, &part.body[..]), (200, &bytes[10..60]));
    let last = format!("models/0/bytes?offset={}&length=65536", bytes.len() - 7);
    assert_eq!(site.get(&last).body, bytes[bytes.len() - 7..]);
    assert!(site.get(&format!("models/0/bytes?offset={}", bytes.len())).body.is_empty());
    site.fails(&format!("models/0/bytes?offset={}", bytes.len() + 1), 400, "request-invalid");
    site.fails("models/0/bytes?length=65537", 400, "request-invalid");
    site.fails("models/0/bytes?file=1", 400, "request-invalid");

    let found = site.json("models/0/spans?offset=0&length=16384");
    let named = found["spans"].as_array().unwrap();
    let kinds: Vec<_> = named[..8].iter().map(|span| span["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "magic",
            "version",
            "tensor-count",
            "key-count",
            "key-length",
            "key",
            "value-type",
            "string-length"
        ]
    );
    assert_eq!(
        (&named[5]["text"], &named[5]["key_n"]),
        (&"general.architecture".into(), &0.into())
    );
    let data = spans.last().unwrap()["start"].as_u64().unwrap();
    let row = site.json(&format!("models/0/spans?offset={data}&length=100"));
    assert_eq!(row["spans"][0]["kind"], "numbers", "{row}");
    site.fails("models/0/spans?length=16385", 400, "request-invalid");
}
