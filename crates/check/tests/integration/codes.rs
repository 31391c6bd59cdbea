//! The table of codes: that it is well formed, and printed as it is.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use gguf::{Error, Fault, Finding};
use gguf_check::codes::{self, CODES};

#[test]
fn findings_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let document = codes::document();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == document, "docs/findings.md is not current: run this test with UPDATE=1");
}

#[test]
fn codes_are_unique_and_documented() {
    let mut names = HashSet::new();
    for code in CODES.iter().flat_map(|area| area.codes) {
        let name = code.name;
        assert!(names.insert(name), "{name} twice");
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{name}"
        );
        for text in [code.meaning, code.advice] {
            assert!(text.ends_with('.') && !text.contains("  ") && !text.contains('|'), "{name}");
        }
        assert_eq!(codes::code(name), Some(code));
    }
    assert_eq!(codes::code("tensor"), None);
}

#[test]
fn the_nearest_codes_are_found() {
    assert_eq!(codes::nearest("key_missing"), ["key-missing"]);
    assert_eq!(codes::nearest("truncate"), ["truncated"]);
    let of_words = ["checkpoint-tensor-missing", "tensor-missing", "adapter-base-missing"];
    assert_eq!(codes::nearest("missing-a-tensor-there"), of_words);
    assert_eq!(codes::nearest("xyz"), [""; 0]);
    assert_eq!(codes::nearest(""), [""; 0]);
}

#[test]
fn errors_name_their_code_and_cause() {
    let path = Path::new("a.json");
    let source = io::Error::other("disk full");
    for (error, fault, code, message) in [
        (
            Error::environment("write", path, source),
            Fault::Environment,
            "environment",
            "cannot write a.json: disk full",
        ),
        (
            Error::input("json-invalid", path, "not valid JSON", "download the file again"),
            Fault::Input,
            "json-invalid",
            "a.json: not valid JSON; download the file again",
        ),
        (
            Error::weights("t", "bad block"),
            Fault::Input,
            "weights-unusable",
            "tensor `t`: bad block; convert the model from another source",
        ),
        (
            Error::from(Finding::error("key-empty", "a key has no name").at(7)).in_file(path),
            Fault::Input,
            "key-empty",
            "a.json: a key has no name (byte 7)",
        ),
        (
            Error::request("model-missing", "no GGUF file at x", ""),
            Fault::Caller,
            "model-missing",
            "no GGUF file at x",
        ),
        (Error::Exists(path.into()), Fault::Caller, "output-exists", "a.json exists already"),
        (Error::Interrupted, Fault::Interrupted, "interrupted", "interrupted"),
    ] {
        assert_eq!((error.fault(), error.code()), (fault, code));
        assert_eq!(error.to_string(), message);
        assert!(codes::code(error.code()).is_some());
        assert!(error.finding().is_none_or(|finding| finding.code == code));
    }
}

/// Adds the Rust sources below `directory` to `sources`.
fn rust_sources(directory: &Path, sources: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn codes_in_the_sources_have_a_row() {
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.is_dir() {
            rust_sources(&source, &mut sources);
        }
    }
    let mut found = HashSet::new();
    for source in &sources {
        for constructor in [
            "Finding::error(",
            "Finding::warning(",
            "Finding::note(",
            "Error::input(",
            "Error::request(",
        ] {
            for call in source.split(constructor).skip(1) {
                let Some(rest) = call.trim_start().strip_prefix('"') else { continue };
                found.extend(rest.split('"').next());
            }
        }
    }
    // Far more are found than a broken pattern would find.
    assert!(found.len() > 100, "{}", found.len());
    let without: Vec<_> = found.into_iter().filter(|name| codes::code(name).is_none()).collect();
    assert_eq!(without, [""; 0]);
}
