//! Findings in the Static Analysis Results Interchange Format, version 2.1.0 (OASIS), which code
//! hosts and editors show.

use gguf::{Finding, Severity, codes};
use serde_json::{Value as Json, json};

/// One run over one file.
pub fn log(file: &str, findings: &[Finding]) -> Json {
    let mut found: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    found.sort_unstable();
    found.dedup();
    let rules: Vec<_> = found.into_iter().map(rule).collect();
    let results: Vec<_> = findings.iter().map(|finding| result(file, finding)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "gguf check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

/// What the table says of a code.
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
        "level": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        },
        "message": { "text": finding.to_string() },
        "locations": [location],
    })
}
