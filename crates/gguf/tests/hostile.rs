//! The reference collection of hostile files.

use std::path::{Path, PathBuf};

use gguf::{Severity, check};

/// Files whose verdict needs more than the header: the data scan, the tokenizer rules, the
/// architecture's schema.
const NEED_MORE: &[&str] = &[
    "nan_inf.gguf",
    "nan_scale.gguf",
    "scores_short.gguf",
    "types_long.gguf",
    "scores_u8_bos_out.gguf",
    "block_count_lies.gguf",
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
        let (findings, _) = check(&bytes);
        let errors = findings.iter().filter(|f| f.severity == Severity::Error).count();
        match case["expect"].as_str().unwrap() {
            "reject" => assert!(errors > 0, "{name}: {findings:?}"),
            "accept" => assert_eq!(errors, 0, "{name}: {findings:?}"),
            "warn" if NEED_MORE.contains(&name) => {}
            "warn" => assert!(!findings.is_empty(), "{name}: {}", case["why"]),
            _ => {}
        }
    }
}
