//! Python files of a checkpoint, which loaders run if the user trusts remote code.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use gguf::{Error, Finding};
use regex::Regex;
use serde_json::Value as Json;

use super::{in_file, read};
use crate::instructions::shortened;
use crate::payload;

/// Calls that run programs or code, open connections or decode code.
static CALL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"\b(os\.(system|popen|exec\w*|spawn\w*|fork|environ)|subprocess\b|eval\s*\(|exec\s*\(|compile\s*\(|__import__|importlib\.import_module|ctypes\b|socket\b|urllib\b|requests\b|httpx\b|http\.client|pickle\.loads?|marshal\.loads?|base64\.b\d\ddecode|codecs\.decode|zlib\.decompress|pty\b|shutil\.rmtree|getattr\s*\(\s*(os|builtins|__builtins__))",
    )
    .ok()
});

/// Maximum number of Python files that are read.
const MAX_FILES: usize = 200;

/// Reports Python files and the calls in them.
pub fn check(directory: &Path, documents: &HashMap<&str, Json>) -> Result<Vec<Finding>, Error> {
    let entries = fs::read_dir(directory).map_err(|fault| Error::read(directory, fault))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".py"))
        .collect();
    names.sort_unstable();
    let mut findings = Vec::new();
    if let [first, ..] = &names[..] {
        let is_loaded = documents.values().any(|document| document["auto_map"].is_object());
        let message = match is_loaded {
            true => format!(
                "has {} Python files ({first} ...), which loaders run with `trust_remote_code`",
                names.len()
            ),
            false => format!("has {} Python files ({first} ...)", names.len()),
        };
        findings.push(Finding::note("custom-code", message));
    }
    for name in names.iter().take(MAX_FILES) {
        let Some(bytes) = read(directory, name)? else { continue };
        let source = String::from_utf8_lossy(&bytes);
        findings.extend(calls(&source).into_iter().map(|finding| in_file(finding, name)));
    }
    Ok(findings)
}

/// Reports the first call at import time and the first within functions.
fn calls(source: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(call) = CALL.as_ref() else { return findings };
    let (mut at_import, mut later) = (false, false);
    for (number, line) in source.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let code = line.split('#').next().unwrap_or_default();
        let statement = code.trim_start();
        if statement.starts_with("import ") || statement.starts_with("from ") {
            continue;
        }
        let Some(found) = call.find(code) else { continue };
        let runs_at_import = code.len() == statement.len();
        let seen = if runs_at_import { &mut at_import } else { &mut later };
        if *seen {
            continue;
        }
        *seen = true;
        let when = if runs_at_import { "when it is imported" } else { "in a function" };
        let message = format!(
            "line {number}: uses `{}` {when}: {:?}",
            found.as_str().trim_end_matches('('),
            shortened(statement)
        );
        findings.push(match runs_at_import {
            true => Finding::error("custom-code-call", message),
            false => Finding::warning("custom-code-call", message),
        });
    }
    if let Some(decoded) = payload::encoded(source) {
        let message = format!("has an encoded text that decodes to {:?}", shortened(&decoded));
        findings.push(Finding::warning("custom-code-call", message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found() {
        let found = calls(
            "import os\n# os.system('x')\nos.system('id')\ndef f():\n    subprocess.run(['a'])\n",
        );
        let found: Vec<_> =
            found.iter().map(|finding| (finding.severity, &*finding.message)).collect();
        assert_eq!(
            found,
            [
                (
                    gguf::Severity::Error,
                    "line 3: uses `os.system` when it is imported: \"os.system('id')\""
                ),
                (
                    gguf::Severity::Warning,
                    "line 5: uses `subprocess` in a function: \"subprocess.run(['a'])\""
                ),
            ]
        );
        assert_eq!(
            calls("import torch\nclass A(torch.nn.Module):\n    def evaluate(self): pass\n"),
            []
        );
    }
}
