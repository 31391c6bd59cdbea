//! Files beside the weights: configurations, tokenizers, templates, model cards and Python code.

mod configuration;
mod python;
mod templates;
mod tokenizer;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use gguf::{Error, Finding};
use gguf_tokenizer::template::Renderer;
use serde_json::Value as Json;
pub use templates::{NamedTemplate, templates};

use crate::metadata;

/// Maximum length in bytes of a file that is read: `tokenizer.json` has up to some dozens of megabytes.
const MAX_LEN: u64 = 64 << 20;

/// Configurations that are checked.
const CONFIGURATIONS: [&str; 7] = [
    "generation_config.json",
    "config.json",
    "tokenizer_config.json",
    "processor_config.json",
    "preprocessor_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
];

/// Returns true for a directory with a configuration or a tokenizer.
pub fn is_checkpoint(directory: &Path) -> bool {
    [
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "tokenizer.json",
        "chat_template.jinja",
    ]
    .iter()
    .any(|name| directory.join(name).is_file())
}

/// Scans the files of a checkpoint directory, except the weights.
///
/// # Errors
/// If the directory or one of the files cannot be read, or a template cannot be rendered in `renderer`'s process.
pub fn scan_directory(directory: &Path, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let read = |name: &str| read(directory, name);
    let mut findings = Vec::new();
    let mut documents = HashMap::new();
    for name in CONFIGURATIONS.into_iter().chain(["tokenizer.json"]) {
        let Some(bytes) = read(name)? else { continue };
        match serde_json::from_slice::<Json>(&bytes) {
            Ok(document) => drop(documents.insert(name, document)),
            Err(fault) => {
                let message = format!("is not valid JSON: {fault}");
                findings.push(in_file(Finding::warning("json-invalid", message), name));
            }
        }
    }
    let vocabulary = tokenizer::Vocabulary::of(documents.get("tokenizer.json"));
    for name in CONFIGURATIONS {
        let Some(document) = documents.get(name) else { continue };
        let found = configuration::check(document, &vocabulary);
        findings.extend(found.into_iter().map(|finding| in_file(finding, name)));
    }
    findings.extend(configuration::end_token(&documents));
    if let Some(document) = documents.get("tokenizer.json") {
        let found = tokenizer::check(document);
        findings.extend(found.into_iter().map(|finding| in_file(finding, "tokenizer.json")));
    }
    let named = templates(|name| read(name))?;
    findings.extend(templates::check(&named, &vocabulary, renderer)?);
    if let Some(card) = read("README.md")? {
        let found = metadata::text(&String::from_utf8_lossy(&card), true);
        let is_about_text = |finding: &Finding| !finding.code.starts_with("template-");
        findings.extend(found.filter(is_about_text).map(|finding| in_file(finding, "README.md")));
    }
    findings.extend(python::check(directory, &documents)?);
    Ok(findings)
}

/// Reads a file of a directory; `None` if it does not exist. Links and special files are not followed out of the directory
/// by name, and longer files are refused.
fn read(directory: &Path, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = directory.join(name);
    let Ok(status) = fs::metadata(&path) else { return Ok(None) };
    if !status.is_file() {
        return Ok(None);
    }
    if status.len() > MAX_LEN {
        let message = format!("has {} bytes; at most {MAX_LEN} are scanned", status.len());
        return Err(Error::input("scan-too-large", &path, message, "examine the file by hand"));
    }
    fs::read(&path).map(Some).map_err(|fault| Error::read(&path, fault))
}

/// Adds the name of a file to a finding.
fn in_file(finding: Finding, name: &str) -> Finding {
    Finding { message: format!("{name}: {}", finding.message).into(), ..finding }
}
