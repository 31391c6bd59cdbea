//! Summary, keys, findings, file regions and graph.

use gguf_kit::summary::Summary;
use gguf_kit::{memory, open};
use gguf_runtime::CacheType;
use serde_json::{Value as Json, json};

use crate::viewer::{Viewer, convert, demo, path_str, reference_data};

#[test]
fn responses_equal_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let opened = open(&path).unwrap();
    let expected = gguf_kit::json::summary(&Summary::of(opened.model()), &path, false);
    assert_eq!(viewer.json("models/0/summary"), gguf_kit::json::with_schema("inspect/2", expected));

    let options = memory::MemoryOptions {
        context: Some(300),
        cache_type: CacheType::F16,
        batch: 7,
        ..Default::default()
    };
    let expected = gguf_kit::json::memory(&memory::estimate(opened.model(), &options).unwrap());
    assert_eq!(viewer.json("models/0/memory?context=300&batch=7"), expected);
    viewer.assert_error("models/0/memory?kv_type=f64", 400, "request-invalid");
    viewer.assert_error("models/0/memory?context=0", 400, "request-invalid");
    assert_eq!(viewer.get("models/0/memory?context=18446744073709551615").status, 200);

    let found = viewer.json("models/0/findings");
    assert_eq!(
        (&found["schema"], &found["file"]),
        (&"gguf-kit/check/2".into(), &path.clone().into())
    );
    for finding in found["findings"].as_array().unwrap() {
        assert!(finding["meaning"].is_string() && finding["file_n"] == 0, "{finding}");
    }

    let graph = viewer.json("models/0/graph?tokens=5");
    assert_eq!(graph["schema"], "gguf-kit/graph/2");
    assert!(graph["operations"].as_array().unwrap().len() > 40 && graph["machine"].is_null());
    let picture = viewer.get("models/0/graph.svg");
    assert_eq!((picture.status, picture.header("content-type")), (200, "image/svg+xml"));
    viewer.assert_error("models/0/graph?tokens=18446744073709551615", 400, "request-invalid");
}

#[test]
fn findings_include_the_scan_for_manipulation() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let codes = || -> Vec<String> {
        let found = viewer.json("models/0/findings");
        let codes = found["findings"].as_array().unwrap().iter();
        codes.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!codes().iter().any(|code| code == "template-escape"));
    let template = "{{ lipsum.__globals__ }}{{ messages[0].content }}";
    let change = json!({ "preview": false, "chat_template": template });
    viewer.post("models/0/edit", &change).ok();
    assert!(codes().iter().any(|code| code == "template-escape"), "{:?}", codes());
}

#[test]
fn models_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let mut options = crate::viewer::options(&[&path]);
    options.original = Some(path.clone());
    let viewer = Viewer::with_options(options);
    let all = viewer.json("models");
    assert_eq!(all["api"], 1);
    let models = all["models"].as_array().unwrap();
    let model = &models[0];
    assert_eq!(
        (&model["id"], &model["source"], &model["remote"]),
        (&0.into(), &path.clone().into(), &false.into())
    );
    assert_eq!(model["bytes"], std::fs::metadata(&path).unwrap().len());
    assert_eq!((&model["original"], &model["editable"]), (&1.into(), &true.into()));
    assert_eq!((models.len(), &models[1]["original"]), (2, &Json::Null));
    assert_eq!(
        model["tensor_count"],
        viewer.json("models/0/tensors")["tensors"].as_array().unwrap().len()
    );
}

#[test]
fn keys_have_values_spans_and_documentation() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let bytes = std::fs::read(&path).unwrap();
    let opened = open(&path).unwrap();
    let metadata = opened.model().metadata();
    let all = viewer.json("models/0/keys?limit=1000");
    assert_eq!((&all["total"], &all["found"]), (&metadata.len().into(), &metadata.len().into()));
    let keys = all["keys"].as_array().unwrap();
    for ((n, (name, value)), key) in metadata.iter().enumerate().zip(keys) {
        assert_eq!((&key["n"], &key["name"]), (&n.into(), &name.into()));
        assert_eq!(key["type"], value.value_type().name());
        // An entry begins with the length of the key, a value with its type.
        let [start, end] = [0, 1].map(|i| key["span"][i].as_u64().unwrap() as usize);
        assert_eq!(&bytes[start + 8..start + 8 + name.len()], name.as_bytes());
        let at = key["value_start"].as_u64().unwrap() as usize;
        assert!(start < at && at < end);
        if let Some(number) = value.to_u64() {
            assert_eq!(key["value"], number);
        }
    }
    let found = viewer.json("models/0/keys?search=ROPE");
    assert_eq!(found["found"], 2, "{found}");
    assert!(found["keys"][0]["documentation"].as_str().unwrap().len() > 10);
    let one = viewer.json("models/0/keys?offset=3&limit=1");
    assert_eq!(one["keys"], Json::Array(vec![keys[3].clone()]));

    let tokens = viewer.json("models/0/key?name=tokenizer.ggml.tokens&offset=300&limit=2");
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
    let by_number = viewer.json(&format!("models/0/key?n={}&offset=300&limit=2", tokens["n"]));
    assert_eq!(by_number, tokens);
    viewer.assert_error("models/0/key?name=nothing", 404, "name-not-found");
    viewer.assert_error("models/0/key?n=18446744073709551615", 404, "name-not-found");
    viewer.assert_error("models/0/key?n=1&name=a", 400, "request-invalid");
    viewer.assert_error("models/0/keys?limit=1001", 400, "request-invalid");
    assert_eq!(
        viewer.json("models/0/keys?offset=18446744073709551615")["keys"],
        Json::Array(vec![])
    );
}

/// Regions and spans are contiguous, and bytes equal the file.
#[test]
fn regions_bytes_and_spans_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let bytes = std::fs::read(&path).unwrap();
    let map = viewer.json("models/0/map");
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
    let tensors = viewer.json("models/0/tensors");
    let tensor_spans: Vec<_> = spans.iter().filter(|span| span["kind"] == "tensor").collect();
    for span in &tensor_spans {
        let tensor = &tensors["tensors"][span["n"].as_u64().unwrap() as usize];
        assert_eq!((&span["start"], &tensor["file"]), (&tensor["offset"], &0.into()));
    }
    assert_eq!(tensor_spans.len(), tensors["tensors"].as_array().unwrap().len());

    let part = viewer.get("models/0/bytes?offset=10&length=50");
    assert_eq!((part.status, &part.body[..]), (200, &bytes[10..60]));
    let last = format!("models/0/bytes?offset={}&length=65536", bytes.len() - 7);
    assert_eq!(viewer.get(&last).body, bytes[bytes.len() - 7..]);
    assert!(viewer.get(&format!("models/0/bytes?offset={}", bytes.len())).body.is_empty());
    viewer.assert_error(
        &format!("models/0/bytes?offset={}", bytes.len() + 1),
        400,
        "request-invalid",
    );
    viewer.assert_error("models/0/bytes?length=65537", 400, "request-invalid");
    viewer.assert_error("models/0/bytes?file=1", 400, "request-invalid");

    let found = viewer.json("models/0/spans?offset=0&length=16384");
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
    let row = viewer.json(&format!("models/0/spans?offset={data}&length=100"));
    assert_eq!(row["spans"][0]["kind"], "numbers", "{row}");
    viewer.assert_error("models/0/spans?length=16385", 400, "request-invalid");
}

#[test]
fn layers_have_their_caches() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let layers = viewer.json("models/0/layers")["layers"].clone();
    assert_eq!(layers.as_array().unwrap().len(), 4);
    // 4 KV heads of 32, in all tokens.
    let cache = json!([{ "key_width": 128, "value_width": 128, "block": 1, "window": null }]);
    assert_eq!(
        (&layers[3]["layer"], &layers[3]["caches"], &layers[3]["state"]),
        (&3.into(), &cache, &0.into())
    );
    let memory = viewer.json("models/0/memory?context=512&kv_type=f16");
    let widths: u64 = 4 * 512 * (128 + 128) * 2;
    assert_eq!(memory["kv_cache"], widths);
}

#[test]
fn the_report_names_the_file_without_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let path = demo(dir.path());
    let viewer = Viewer::open(&[&path]);
    let reply = viewer.get("models/0/report");
    assert_eq!(
        (reply.status, reply.header("content-disposition")),
        (200, "attachment; filename=report.html")
    );
    let page = reply.text();
    assert!(page.contains("demo.gguf") && !page.contains(dir.path().to_str().unwrap()));
    assert!(page.contains("og:title") && page.contains("<h2 id=\"sizes\">"));
}

/// Rows of query and key projections are rotated in pairs; those of values are not.
#[test]
fn rope_of_projections() {
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&demo(dir.path())]);
    let rope = viewer.json("models/0/rope");
    let all = rope["projections"].as_array().unwrap();
    let names: Vec<_> = all.iter().map(|one| one["tensor"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(names.iter().all(|name| name.contains("attn_q.") || name.contains("attn_k.")));
    assert_eq!(
        all[0],
        json!({
            "tensor": "blk.0.attn_q.weight", "first_row": 0, "rows": 256, "heads": 8,
            "layout": "interleaved", "start": 0, "dimensions": 32, "freq_base": 10000.0,
        })
    );
}

/// Queries and keys of a fused projection are rotated, its last rows, the values, are not.
#[test]
fn rope_of_a_fused_projection() {
    let Some(data) = reference_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let viewer = Viewer::open(&[&convert(path_str(&data.join("zoo/phi3")), dir.path())]);
    let rope = viewer.json("models/0/rope");
    let all = rope["projections"].as_array().unwrap();
    let projection = |first_row: u64| {
        json!({
            "tensor": "blk.0.attn_qkv.weight", "first_row": first_row, "rows": 256, "heads": 8,
            "layout": "neox", "start": 0, "dimensions": 32, "freq_base": 10000.0,
        })
    };
    assert_eq!(all[..2], [projection(0), projection(256)]);
    assert_eq!(all.len(), 4);
}
