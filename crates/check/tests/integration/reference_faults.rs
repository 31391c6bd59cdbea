//! The reference collection of hostile files.

use std::path::{Path, PathBuf};

use gguf::Severity;
use gguf_check::check;

/// Files whose verdict needs a look at tensor data.
const NEED_DATA: &[&str] = &["nan_inf.gguf", "nan_scale.gguf"];

/// Files with one fault in the model's own terms, and the finding that must name it.
const CODES: &[(&str, &str)] = &[
    ("scores_short.gguf", "tokenizer-length"),
    ("types_long.gguf", "tokenizer-length"),
    ("scores_u8_bos_out.gguf", "key-type"),
    ("scores_u8_bos_out.gguf", "token-id-range"),
    ("block_count_lies.gguf", "layer-count"),
];

fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from);
    if dir.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
    }
    dir
}

#[test]
fn verdicts() {
    let Some(dir) = data().map(|dir| dir.join("hostile")) else { return };
    let cases: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("cases.json")).unwrap()).unwrap();
    for case in cases.as_array().unwrap() {
        let name = case["file"].as_str().unwrap();
        let bytes = std::fs::read(dir.join(Path::new(name))).unwrap();
        let (findings, _) = check(&bytes.into());
        let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
        match case["expect"].as_str().unwrap() {
            "reject" => assert!(errors > 0, "{name}: {findings:?}"),
            "accept" => assert_eq!(errors, 0, "{name}: {findings:?}"),
            "warn" if NEED_DATA.contains(&name) => {}
            "warn" => assert!(!findings.is_empty(), "{name}: {}", case["why"]),
            _ => {}
        }
    }
}

#[test]
fn faults_of_models_are_named() {
    let Some(dir) = data().map(|dir| dir.join("hostile")) else { return };
    for (name, code) in CODES {
        let bytes = std::fs::read(dir.join(name)).unwrap();
        let (findings, _) = check(&bytes.into());
        assert!(findings.iter().any(|f| f.code == *code), "{name}: {findings:?}");
    }
}
