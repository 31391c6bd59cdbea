//! The table of codes is complete and minimal, and no public function returns a text as its error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gguf_check::codes::CODES;
use regex::Regex;

use crate::cli::support::{Dir, fails, gguf, json, succeeds};

/// Returns the sources of all crates, without the table of codes and without test modules.
fn sources() -> Vec<(PathBuf, String)> {
    fn add(dir: &Path, files: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("codes") {
                add(&path, files);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                files.push((path, text.to_owned()));
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        add(&entry.unwrap().path().join("src"), &mut files);
    }
    add(&crates.join("../bindings/python/src"), &mut files);
    assert!(files.len() > 300, "{}", files.len());
    files
}

/// Returns the codes in a source: the string literals that begin a finding or an error.
fn codes_in(source: &str) -> Vec<&str> {
    let call = r"(?:Finding::(?:error|warning|info|new)|Error::(?:input|request)|request)";
    let call = Regex::new(&format!(r#"\b(?:{call}|Self::(?:input|request))\(\s*"([a-z0-9-]+)""#));
    let call = call.unwrap();
    call.captures_iter(source).map(|found| found.get(1).unwrap().as_str()).collect()
}

#[test]
fn the_table_of_codes_is_exact() {
    let files = sources();
    let known: BTreeSet<&str> =
        CODES.iter().flat_map(|area| area.codes).map(|code| code.name).collect();
    let missing: Vec<_> = files
        .iter()
        .flat_map(|(path, text)| codes_in(text).into_iter().map(move |code| (path, code)))
        .filter(|(_, code)| !known.contains(code))
        .collect();
    assert!(missing.is_empty(), "codes without a row: {missing:?}");
    let all: String = files.iter().map(|(_, text)| text.as_str()).collect();
    let unused: Vec<_> =
        known.iter().filter(|code| !all.contains(&format!("\"{code}\""))).collect();
    assert!(unused.is_empty(), "rows that nobody uses: {unused:?}");
}

#[test]
fn every_code_is_tested() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let cases: String = ["gguf", "check", "store"]
        .iter()
        .flat_map(|name| fs::read_dir(crates.join(name).join("tests/integration")).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let sources = sources();
    let folders = ["gguf/src/rules", "check/src/rules"].map(|folder| crates.join(folder));
    let rules =
        sources.iter().filter(|(path, _)| folders.iter().any(|folder| path.starts_with(folder)));
    let codes: BTreeSet<&str> = rules.flat_map(|(_, text)| codes_in(text)).collect();
    assert!(codes.len() > 60, "{}", codes.len());
    let without: Vec<_> =
        codes.iter().filter(|code| !cases.contains(&format!("\"{code}\""))).collect();
    assert!(without.is_empty(), "rules without a case: {without:?}");
}

#[test]
fn codes_are_extracted_from_sources() {
    let source = r#"
        Finding::error("a-b", m); Finding::warning(
            "c", x)
        return Err(Error::request("d-e-1", what, ""));
        fault("not-this")
    "#;
    assert_eq!(codes_in(source), ["a-b", "c", "d-e-1"]);
}

#[test]
fn no_public_function_returns_a_text_error() {
    let text = Regex::new(r"(?m)^\s*pub (?:const )?fn [^{;]*Result<[^{;]*, String>\s*(?:\{|where)");
    let text = text.unwrap();
    assert!(text.is_match("pub fn f(\n    a: u8,\n) -> Result<Vec<u8>, String> {"));
    assert!(!text.is_match("pub fn f() -> Result<u8, Error> {\n} fn g() -> Result<u8, String> {"));
    let library = |path: &Path| !path.components().any(|part| part.as_os_str() == "cli");
    let found: Vec<_> = sources()
        .into_iter()
        .filter(|(path, source)| library(path) && text.is_match(source))
        .map(|(path, _)| path)
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn codes_are_explained() {
    let shown = succeeds(&["check", "--explain", "tensor-overlap"]);
    assert_eq!(
        shown,
        "tensor-overlap\n\nThe data of two tensors overlaps.\n\nWhat to do: Convert the model \
         again: an offset is wrong.\n"
    );
    fails(
        &["check", "--explain", "tensor-overlapp"],
        2,
        &["there is no code `tensor-overlapp`; did you mean tensor-overlap"],
    );
    fails(&["check", "--explain", "xyz"], 2, &["there is no code `xyz`; docs/findings.md lists"]);
    fails(&["check", "--explain", "truncated", "m.gguf"], 2, &["--explain"]);
    fails(&["check"], 2, &["<SOURCE>"]);
}

#[test]
fn rules_of_sarif_are_described() {
    let dir = Dir::new();
    let (f16, out) = (dir.f16(), dir.path("out.gguf"));
    succeeds(&["edit", &f16, "-o", &out, "--force", "--set", "tokenizer.ggml.bos_token_id=100000"]);
    let sarif = gguf(&["check", &out, "--sarif"]);
    let sarif = json(&String::from_utf8(sarif.stdout).unwrap());
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["id"] == "token-id-range").unwrap();
    let row = gguf_check::codes::code("token-id-range").unwrap();
    assert_eq!(rule["shortDescription"]["text"], row.meaning);
    assert_eq!(rule["help"]["text"], row.advice);
}
