//! The `general.*` keys from model cards, compared with llama.cpp's conversion.

use std::path::{Path, PathBuf};

use gguf::{Error, Metadata, ParameterCount, ValueType};
use gguf_convert::model_card::GeneralMetadata;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Creates a model directory with these files.
fn model(name: &str, files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    for (file, content) in files {
        std::fs::write(dir.join(file), content).unwrap();
    }
    (root, dir)
}

fn written(general: &GeneralMetadata) -> Value {
    let mut metadata = Metadata::new();
    general.write_to(&mut metadata);
    metadata
        .iter()
        .map(|(key, value)| json!([key, value.value_type().name(), plain(value)]))
        .collect()
}

fn plain(value: &gguf::Value) -> Value {
    if let Some(array) = value.as_array() {
        return array.iter().map(|item| plain(&item)).collect();
    }
    match value.value_type() {
        ValueType::String => value.as_str().into(),
        ValueType::F32 => value.to_f64().into(),
        _ => value.to_i64().into(),
    }
}

/// `data/model_card.py` writes the cases and expected keys.
#[test]
fn model_cards_convert_as_in_llama_cpp() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/cards.json")).unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let (_root, dir) = model(case["directory"].as_str().unwrap(), &[]);
        for (file, key) in
            [("README.md", "readme"), ("generation_config.json", "generation_config")]
        {
            match &case[key] {
                Value::Null => {}
                Value::String(text) => std::fs::write(dir.join(file), text).unwrap(),
                value => std::fs::write(dir.join(file), value.to_string()).unwrap(),
            }
        }
        let overrides = case.get("overrides").map(|overrides| {
            let path = dir.join("overrides.json");
            std::fs::write(&path, overrides.to_string()).unwrap();
            path
        });
        let count = |key: &str| case[key].as_u64().unwrap();
        let total = case["total_params"].as_i64().unwrap();
        let parameters = ParameterCount {
            total: total.unsigned_abs(),
            shared: count("shared_params"),
            expert: count("expert_params"),
            expert_count: count("expert_count"),
            adapter: total < 0,
        };
        let general = GeneralMetadata::load(
            &dir,
            case.get("config"),
            &parameters,
            overrides.as_deref(),
            case["name"].as_str(),
        );
        let mut expected = case["expected"].clone();
        for entry in expected.as_array_mut().unwrap() {
            // llama.cpp's writer rounds to F32. The file has the unrounded numbers.
            if entry[1] == "FLOAT32" {
                entry[2] = (entry[2].as_f64().unwrap() as f32).into();
            }
        }
        assert_eq!(written(&general.unwrap()), expected, "{}", case["case"]);
    }
}

fn load(dir: &Path, overrides: Option<&Path>) -> Result<GeneralMetadata, Error> {
    GeneralMetadata::load(dir, None, &ParameterCount::default(), overrides, None)
}

/// llama.cpp's converter fails in these cases, or writes an empty name.
#[test]
fn unusual_model_cards_convert() {
    let readme = "---\nname: 7\nversion: 1.10\nauthor: [A, B]\ndescription: {a: b}\nlanguage: no\n\
                  tags: [1, true, x, null]\n---\n\u{1}";
    let (_root, dir) = model("m", &[("README.md", readme)]);
    let general = load(&dir, None).unwrap();
    assert_eq!(general.name.as_deref(), Some("7"));
    assert_eq!(general.version.as_deref(), Some("1.10"));
    assert_eq!(general.author.as_deref(), Some("A,B"));
    assert_eq!(general.description, None);
    assert_eq!(general.languages, ["no"]);
    assert_eq!(general.tags, ["1", "true", "x"]);

    let (_root, dir) = model("Zoo", &[("README.md", "---\nname: ''\n---\n")]);
    let config = json!({ "_name_or_path": "" });
    let general =
        GeneralMetadata::load(&dir, Some(&config), &ParameterCount::default(), None, None);
    assert_eq!(general.unwrap().name.as_deref(), Some("Zoo"));
    let general = load(&dir.join("..").join("Zoo").join("..").join("Zoo").join("."), None);
    assert_eq!(general.unwrap().name.as_deref(), Some("Zoo"));
}

#[test]
fn errors_name_file_and_line() {
    let fault = |readme: &str| {
        let (_root, dir) = model("m", &[("README.md", readme)]);
        load(&dir, None).unwrap_err().to_string()
    };
    let message = fault("---\nlicense: mit\nname: [a\nb: c\n---\n");
    assert!(message.contains("README.md: line 4: the model card is not valid YAML"), "{message}");
    assert!(message.ends_with("correct the card, or move the file away"), "{message}");

    let (_root, dir) = model("m", &[]);
    std::fs::write(dir.join("README.md"), b"---\nname: x\nauthor: \xff\n---\n").unwrap();
    let message = load(&dir, None).unwrap_err().to_string();
    assert!(message.contains("line 3: the model card is not UTF-8"), "{message}");

    let overrides = |content: &str| {
        let (_root, dir) = model("m", &[("o.json", content)]);
        load(&dir, Some(&dir.join("o.json"))).unwrap_err().to_string()
    };
    let message = overrides(r#"{"general.sampling.top_k": 1.5}"#);
    assert!(
        message.contains("`general.sampling.top_k` is 1.5; expected a value of type INT32"),
        "{message}"
    );
    assert!(overrides("[]").contains("not a JSON object"));
    assert!(overrides(r#"{"general.name": {}}"#).contains("`general.name` is an object"));
    let (_root, dir) = model("m", &[]);
    assert!(matches!(load(&dir, Some(&dir.join("none.json"))), Err(Error::Environment { .. })));
}

#[test]
fn hostile_model_cards_fail_fast() {
    let card = |yaml: &str| {
        let (_root, dir) = model("m", &[("README.md", &format!("---\n{yaml}\n---\n"))]);
        load(&dir, None).map_err(|err| err.to_string())
    };
    // Each line repeats the previous line ten times: 10^9 strings if they were copied.
    let mut bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_string();
    for i in 1..10 {
        let aliases = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb += &format!("a{i}: &a{i} [{aliases}]\n");
    }
    assert!(card(&bomb).unwrap_err().contains("twice as large"));
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        let nested = open.repeat(100) + &close.repeat(100);
        assert!(card(&nested).unwrap_err().contains("nested too deeply"), "{open}");
        assert!(card(&open.repeat(500_000)).is_err());
    }
    // An alias within its own anchor, and undefined aliases.
    assert!(card("tags: &a [x, *a]").is_ok_and(|general| general.tags == ["x"]));
    assert!(card("tags: *nothing").is_err());

    let long = "x".repeat(5 << 20);
    assert!(card(&format!("a: {long}")).unwrap_err().contains("does not end within"));
    let (_root, dir) = model("m", &[("README.md", &format!("---\nname: x\n---\n{long}"))]);
    assert_eq!(load(&dir, None).unwrap().name.as_deref(), Some("x"));
}

#[test]
fn general_keys_of_reference_checkpoints() {
    let Some(data) = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: GGUF_TEST_DATA is not set");
        return;
    };
    let mut compared = 0;
    for entry in std::fs::read_dir(data.join("zoo")).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(manifest) = std::fs::read(dir.join("official.f32.manifest.json")) else { continue };
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let tensors: Vec<(String, Vec<u64>)> = manifest["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tensor| {
                let shape = tensor["ne"].as_array().unwrap();
                let shape = shape.iter().map(|n| n.as_u64().unwrap()).collect();
                (tensor["name"].as_str().unwrap().to_owned(), shape)
            })
            .collect();
        let shapes = tensors.iter().map(|(name, shape)| (&**name, &**shape));
        let parameters = ParameterCount::from_tensors(shapes);
        let config = std::fs::read(dir.join("config.json")).ok();
        let config: Option<Value> = config.map(|bytes| serde_json::from_slice(&bytes).unwrap());
        let kv = manifest["kv"].as_object().unwrap();
        let name = kv["general.name"]["value"].as_str();
        let general =
            GeneralMetadata::load(&dir, config.as_ref(), &parameters, None, name).unwrap();

        let others = ["architecture", "type", "file_type", "quantization_version", "alignment"];
        let expected: Value = kv
            .iter()
            .filter_map(|(key, entry)| Some((key, key.strip_prefix("general.")?, entry)))
            .filter(|(_, short, _)| !others.contains(short))
            .map(|(key, _, entry)| json!([key, entry["type"][0], entry["value"]]))
            .collect();
        assert_eq!(written(&general), expected, "{}", dir.display());
        compared += 1;
    }
    assert!(compared >= 6, "only {compared} checkpoints with manifests");

    let dir = data.join("tiny-kjv-llama/Tiny-KJV-Llama-4M");
    let parameters = ParameterCount { total: 4_223_232, ..Default::default() };
    let general = GeneralMetadata::load(&dir, None, &parameters, None, None).unwrap();
    let expected = json!([
        ["general.name", "STRING", "Tiny KJV Llama 4M"],
        ["general.basename", "STRING", "Tiny-KJV-Llama"],
        ["general.size_label", "STRING", "4M"],
        ["general.license", "STRING", "apache-2.0"],
        ["general.tags", "ARRAY", ["text-generation", "tiny", "text-generation"]],
        ["general.languages", "ARRAY", ["en"]],
    ]);
    assert_eq!(written(&general), expected);
}
