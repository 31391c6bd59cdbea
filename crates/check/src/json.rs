//! Findings and errors as JSON documents of `docs/json/`.

use std::path::Path;

use gguf::{Error, Fault, Finding};
use serde_json::{Value as Json, json};

use crate::codes;

/// Help for an existing output.
pub const REPLACE: &str = "name another output, or replace it with --force";

/// Serializes a finding of `check/2`.
pub fn finding(finding: &Finding) -> Json {
    json!({
        "code": finding.code,
        "severity": finding.severity.to_string(),
        "offset": finding.offset,
        "key": finding.key,
        "tensor": finding.tensor,
        "message": finding.message,
        "help": finding.help,
    })
}

/// Returns the name of a fault.
pub fn whose(fault: Fault) -> &'static str {
    match fault {
        Fault::Environment => "environment",
        Fault::Input => "input",
        Fault::Caller => "caller",
        Fault::Interrupted => "interrupted",
    }
}

/// Serializes an error: `error` of `error/1`.
pub fn error(error: &Error) -> Json {
    let (code, finding) = (error.code(), error.finding());
    let advice = codes::code(code).map_or("", |row| row.advice);
    let help = match (error, finding) {
        (Error::Exists(_), _) => REPLACE,
        (_, Some(finding)) if !finding.help.is_empty() => &finding.help,
        _ => advice,
    };
    let message = finding.map_or_else(|| error.to_string(), |finding| finding.message.to_string());
    json!({
        "code": code,
        "fault": whose(error.fault()),
        "message": message,
        "file": file_of(error).map(|path| path.display().to_string()),
        "offset": finding.and_then(|finding| finding.offset),
        "key": finding.and_then(|finding| finding.key.as_deref()),
        "tensor": finding.and_then(|finding| finding.tensor.as_deref()),
        "help": help,
    })
}

/// Returns the file of an error.
fn file_of(error: &Error) -> Option<&Path> {
    match error {
        Error::Environment { path, .. } | Error::InFile { path, .. } | Error::Exists(path) => {
            Some(path)
        }
        _ => None,
    }
}
