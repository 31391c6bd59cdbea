//! Rules on keys that the schema knows: their types, and names that are old, foreign or misspelt.

use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::Subject;
use crate::schema::{self, KeySchema, Requirement, SECTIONS};
use crate::value::Value;

/// Keys whose absence the rules on tokenizers report.
const PRE: &str = "tokenizer.ggml.pre";
/// Keys whose type the rules on headers look at.
const CHECKED: &[&str] =
    &["general.architecture", "general.alignment", "general.quantization_version"];
/// Keys compared with every standard key for a slip: more of them are no slips.
const MOST_UNKNOWN: usize = 100;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let architecture = subject.draft.metadata.architecture();
    let mut unknown = 0;
    for (i, (key, value)) in subject.draft.metadata.iter().enumerate() {
        let Some(standard) = schema::key(key) else {
            unknown += 1;
            if unknown <= MOST_UNKNOWN
                && let Some(finding) = near_miss(key)
            {
                sink.report(finding.key(key).at(subject.entry_at(i)))?;
            }
            continue;
        };
        if let Requirement::Deprecated(instead) = standard.requirement {
            sink.report(deprecated(key, instead).key(key).at(subject.entry_at(i)))?;
        }
        if let Some(finding) = foreign(key, standard, architecture) {
            sink.report(finding.key(key).at(subject.entry_at(i)))?;
        }
        if !standard.value.accepts(value) && !CHECKED.contains(&key) {
            let message = format!("is {} instead of {}", type_of(value), standard.value);
            sink.report(
                Finding::warning("key-type", message)
                    .key(key)
                    .at(subject.value_of(i))
                    .help("most programs refuse the file or ignore the key"),
            )?;
        }
    }
    missing(subject, sink)
}

/// Keys that others ask for: an adapter's type, a vision encoder's sizes.
fn missing(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.draft.metadata;
    for key in SECTIONS.iter().flat_map(|section| section.keys) {
        if let Requirement::When(condition) = key.requirement
            && key.requirement.holds(metadata)
            && metadata.get(key.name).is_none()
            && key.name != PRE
        {
            let message = format!("needed because {condition}");
            sink.report(
                Finding::warning("key-missing", message)
                    .key(key.name)
                    .help("programs refuse the file without it; convert it anew or set the key"),
            )?;
        }
    }
    ControlFlow::Continue(())
}

fn type_of(value: &Value) -> String {
    match value {
        Value::Array(array) => format!("array of {}", array.element_type()),
        value => value.value_type().to_string(),
    }
}

fn near_miss(key: &str) -> Option<Finding> {
    let nearest = schema::nearest_key(key)?;
    let message = format!("not a standard key, but much like `{nearest}`");
    Some(Finding::info("key-near-miss", message).help("rename it if that was meant"))
}

fn deprecated(key: &str, instead: &str) -> Finding {
    let finding = |message: String| Finding::info("key-deprecated", message);
    match instead.strip_prefix("{arch}") {
        None if instead.is_empty() => finding("no program reads this key".into()),
        None => finding(format!("`{instead}` has taken its place")),
        Some(suffix) => {
            let prefix = key.split('.').next().unwrap_or_default();
            finding(format!("`{prefix}{suffix}` has taken its place"))
        }
    }
}

/// A key of another architecture than the file's.
fn foreign(key: &str, standard: &KeySchema, architecture: Option<&str>) -> Option<Finding> {
    let prefix = key.split('.').next().filter(|_| standard.name.starts_with("{arch}"))?;
    let (own, other) = (schema::architecture(architecture?)?, schema::architecture(prefix)?);
    (own.name != other.name).then(|| {
        let message = format!("a key of {} in a file of {}", other.name, own.name);
        Finding::info("key-foreign", message)
            .help("programs look for keys that begin with the file's own architecture")
    })
}
