//! Rules on files that llama.cpp's tools write: no false alarms, and correct codes for real faults.

use std::path::{Path, PathBuf};

use gguf::{
    Array, FILE_TYPES, Finding, Header, RawHeader, Severity, Shape, TensorInfo, TensorType, Value,
    check, write_header,
};
use serde_json::Value as Json;

fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from);
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
    }
    dir
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn value(entry: &Json) -> Value {
    let types: Vec<_> =
        entry["type"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let value = &entry["value"];
    let numbers = || value.as_array().unwrap().iter();
    match types[..] {
        ["STRING"] => Value::from(value.as_str().unwrap().to_owned()),
        ["BOOL"] => Value::Bool(value.as_bool().unwrap()),
        ["UINT32"] => Value::U32(value.as_u64().unwrap() as u32),
        ["FLOAT32"] => Value::F32(value.as_f64().unwrap() as f32),
        ["ARRAY", "STRING"] => {
            let texts: Vec<_> = numbers().map(|v| v.as_str().unwrap().to_owned()).collect();
            Array::from_strings(texts).into()
        }
        ["ARRAY", "INT32"] => {
            let ints: Vec<_> = numbers().map(|v| v.as_i64().unwrap() as i32).collect();
            Array::from(&ints[..]).into()
        }
        ["ARRAY", "FLOAT32"] => {
            let floats: Vec<_> = numbers().map(|v| v.as_f64().unwrap() as f32).collect();
            Array::from(&floats[..]).into()
        }
        _ => panic!("{types:?}"),
    }
}

/// Returns the header that a manifest describes, as a file without tensor data.
fn manifest(path: &Path) -> RawHeader {
    let parse =
        |path: &Path| -> Json { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let json = parse(path);
    // Long arrays are listed only in the manifest of the f32 file.
    let long = parse(&path.with_file_name("official.f32.manifest.json"));
    let mut raw = RawHeader::default();
    for (key, mut entry) in json["kv"].as_object().unwrap() {
        if entry["value"]["see"].is_string() {
            entry = &long["kv"][key];
        }
        if !key.starts_with("GGUF.") {
            raw.metadata.set(key.clone(), value(entry));
        }
    }
    for tensor in json["tensors"].as_array().unwrap() {
        let dims: Vec<u64> =
            tensor["ne"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
        raw.tensors.push(TensorInfo {
            name: tensor["name"].as_str().unwrap().to_owned(),
            shape: Shape::new(&dims).unwrap(),
            tensor_type: tensor["type"].as_str().unwrap().parse::<TensorType>().unwrap(),
            offset: 0,
            opaque_len: None,
        });
    }
    raw
}

fn findings(mut raw: RawHeader) -> Vec<Finding> {
    let data = raw.lay_out().unwrap() as usize;
    let mut file = write_header(&Header::new(raw).unwrap()).unwrap();
    let start = file.len();
    file.resize(start + data, 0);
    check(&file.into()).0
}

#[test]
fn official_conversions_pass() {
    let Some(dir) = data().map(|dir| dir.join("zoo")) else { return };
    let manifests = files(&dir, ".manifest.json");
    assert!(manifests.len() >= 42, "{} manifests", manifests.len());
    let mut failed = Vec::new();
    for path in manifests {
        let findings = findings(manifest(&path));
        if !findings.is_empty() {
            failed.push(format!("{}: {findings:#?}", path.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn files_of_the_official_tools_have_no_errors() {
    let Some(dir) = data() else { return };
    for folder in ["vocab", "zoo/lora-llama", "tiny-kjv-llama", "legacy"] {
        for path in files(&dir.join(folder), ".gguf") {
            let bytes = std::fs::read(&path).unwrap();
            for finding in check(&bytes.into()).0 {
                eprintln!("{}: {}: {}: {finding}", path.display(), finding.severity, finding.code);
                assert!(finding.severity < Severity::Error, "{}: {finding}", path.display());
            }
        }
    }
}

#[test]
fn file_types_of_official_files_match() {
    let Some(dir) = data() else { return };
    let plans: Json =
        serde_json::from_slice(&std::fs::read(dir.join("mix-plans.json")).unwrap()).unwrap();
    let (mut checked, mut failed) = (0, Vec::new());
    for (model, plan) in plans.as_object().unwrap() {
        for (mix, types) in plan["plans"].as_object().unwrap() {
            let name = mix.trim_end_matches("+imatrix");
            let Some(file_type) = FILE_TYPES.iter().find(|row| row.name == name) else {
                panic!("{name} is not a file type");
            };
            let Some(default) = types["default"].as_str() else { continue };
            let mut raw = RawHeader::default();
            raw.metadata.set("general.file_type", file_type.id);
            for tensor in plan["tensors"].as_array().unwrap() {
                let name = tensor[0].as_str().unwrap();
                let dims: Vec<u64> =
                    tensor[1].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
                let tensor_type = types["except"][name].as_str().unwrap_or(default);
                raw.tensors.push(TensorInfo {
                    name: name.to_owned(),
                    shape: Shape::new(&dims).unwrap(),
                    tensor_type: tensor_type.parse().unwrap(),
                    offset: 0,
                    opaque_len: None,
                });
            }
            raw.lay_out().unwrap();
            let file = write_header(&Header::new(raw).unwrap()).unwrap();
            let (findings, _) = check(&file.into());
            let wrong = findings.iter().find(|finding| finding.code == "file-type-wrong");
            failed.extend(wrong.map(|wrong| format!("{model} as {mix}: {wrong}")));
            checked += 1;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(checked > 500, "{checked} mixes");
}
