//! Rules on standard keys: types, values, and deprecated, foreign or misspelled names.

use std::ops::ControlFlow;

use gguf::{Finding, Sink, Subject, Value, ValueType};
use gguf_models::schema;
use gguf_models::schema::{KeySchema, Requirement, SECTIONS};

/// Key whose absence the rules on tokenizers report.
const PRE: &str = "tokenizer.ggml.pre";
/// Keys that every tokenizer requires.
const TOKENS: &str = "tokenizer.ggml.tokens";
const MERGES: &str = "tokenizer.ggml.merges";
const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
/// Keys whose type the rules on headers check.
const CHECKED: &[&str] =
    &["general.architecture", "general.alignment", "general.quantization_version"];
/// Maximum number of unknown keys that are compared with every standard key.
const MAX_UNKNOWN: usize = 100;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let architecture = subject.header.metadata.architecture();
    let mut unknown = 0;
    for (i, (key, value)) in subject.header.metadata.iter().enumerate() {
        let Some(standard) = schema::key(key) else {
            unknown += 1;
            if unknown <= MAX_UNKNOWN
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
        if let Some(message) = standard.value.mismatch(value)
            && !CHECKED.contains(&key)
        {
            let finding = match is_read(key, value, architecture) {
                true => Finding::error("key-type", message)
                    .help("loaders reject the file; set the key again with the right type"),
                false => Finding::warning("key-type", message)
                    .help("most loaders reject the file or ignore the key"),
            };
            sink.report(finding.key(key).at(subject.value_of(i)))?;
        }
        if let Some(wrong) = standard.value.out_of_range(value) {
            sink.report(
                Finding::error("key-value", wrong)
                    .key(key)
                    .at(subject.value_of(i))
                    .help("the model's output is invalid with it; set the key again"),
            )?;
        }
    }
    missing(subject, sink)
}

/// Returns true if every loader reads the key of such a model, so that a wrong type is fatal.
fn is_read(key: &str, value: &Value, architecture: Option<&str>) -> bool {
    match key {
        TOKENS | MERGES | TOKEN_TYPE => true,
        // Loaders accept integers too.
        SCORES => value.as_array().is_none_or(|array| array.element_type() != ValueType::I32),
        _ => architecture.and_then(schema::architecture).is_some_and(|architecture| {
            let own = key.strip_prefix(architecture.name).and_then(|key| key.strip_prefix('.'));
            own.is_some_and(|own| {
                let groups = architecture.required.iter().chain(architecture.optional);
                groups.copied().flatten().any(|key| *key == own)
            })
        }),
    }
}

/// Reports missing keys that other keys require, such as the sizes of a vision encoder.
fn missing(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    for key in SECTIONS.iter().flat_map(|section| section.keys) {
        if let Requirement::When(condition) = key.requirement
            && key.requirement.holds(metadata)
            && metadata.get(key.name).is_none()
            && key.name != PRE
        {
            let message = format!("required because {condition}");
            // Some vision and audio encoders do not need all keys.
            let finding = match key.name {
                "adapter.type" => Finding::error("key-missing", message),
                _ => Finding::warning("key-missing", message),
            };
            sink.report(
                finding
                    .key(key.name)
                    .help("loaders reject the file without it; convert it again or set the key"),
            )?;
        }
    }
    ControlFlow::Continue(())
}

fn near_miss(key: &str) -> Option<Finding> {
    let nearest = schema::nearest_key(key)?;
    let message = format!("not a standard key, but close to `{nearest}`");
    Some(Finding::note("key-near-miss", message).help("rename the key if it is a typo"))
}

fn deprecated(key: &str, instead: &str) -> Finding {
    let finding = |message: String| Finding::note("key-deprecated", message);
    match instead.strip_prefix("{arch}") {
        None if instead.is_empty() => finding("loaders ignore this key".into()),
        None => finding(format!("`{instead}` replaced it")),
        Some(suffix) => {
            let prefix = key.split('.').next().unwrap_or_default();
            finding(format!("`{prefix}{suffix}` replaced it"))
        }
    }
}

/// Reports a key of an architecture that is not the file's.
fn foreign(key: &str, standard: &KeySchema, architecture: Option<&str>) -> Option<Finding> {
    let prefix = key.split('.').next().filter(|_| standard.name.starts_with("{arch}"))?;
    let (own, other) = (schema::architecture(architecture?)?, schema::architecture(prefix)?);
    (own.name != other.name).then(|| {
        let message = format!("a key of {} in a file of {}", other.name, own.name);
        Finding::note("key-foreign", message)
            .help("loaders look for keys with the prefix of the file's architecture")
    })
}
