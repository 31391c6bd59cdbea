//! Findings in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS), which code
//! hosts and editors show.

use std::collections::BTreeSet;

use gguf::Finding;
use gguf_check::codes;
use serde_json::{Value as Json, json};

/// SARIF log of a run over files.
#[derive(Default)]
pub struct Log {
    found: BTreeSet<&'static str>,
    results: Vec<Json>,
    notifications: Vec<Json>,
}

impl Log {
    /// Adds the findings of a file.
    pub fn add(&mut self, file: &str, findings: &[Finding]) {
        self.found.extend(findings.iter().map(|finding| finding.code));
        self.results.extend(findings.iter().map(|finding| result(file, finding)));
    }

    /// Adds a file that could not be read, and the reason.
    pub fn add_failed(&mut self, file: &str, why: &str) {
        self.notifications.push(json!({
            "level": "error",
            "message": { "text": why },
            "locations": [{ "physicalLocation": { "artifactLocation": { "uri": file } } }],
        }));
    }

    /// Returns the log, with one run over all files.
    pub fn to_json(&self) -> Json {
        let rules: Vec<_> = self.found.iter().map(|code| rule(code)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "gguf check",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "invocations": [{
                    "executionSuccessful": self.notifications.is_empty(),
                    "toolExecutionNotifications": self.notifications,
                }],
                "results": self.results,
            }],
        })
    }
}

/// Returns the description of a finding code.
fn rule(code: &str) -> Json {
    match codes::code(code) {
        Some(row) => json!({
            "id": code,
            "shortDescription": { "text": row.meaning },
            "help": { "text": row.advice },
        }),
        None => json!({ "id": code }),
    }
}

fn result(file: &str, finding: &Finding) -> Json {
    let mut location = json!({ "physicalLocation": { "artifactLocation": { "uri": file } } });
    if let Some(offset) = finding.offset {
        location["physicalLocation"]["region"] = json!({ "byteOffset": offset });
    }
    let names = [(&finding.key, "member"), (&finding.tensor, "object")];
    let logical: Vec<_> = names
        .iter()
        .filter_map(|(name, kind)| Some(json!({ "name": name.as_ref()?, "kind": kind })))
        .collect();
    if !logical.is_empty() {
        location["logicalLocations"] = logical.into();
    }
    json!({
        "ruleId": finding.code,
        "level": finding.severity.name(),
        "message": { "text": finding.to_string() },
        "locations": [location],
    })
}
