//! Rules on the whole header: version, architecture, alignment.

use std::ops::ControlFlow;

use crate::alignment::{self, Alignment};
use crate::finding::{Finding, Sink};
use crate::rules::kind::FileKind;
use crate::rules::subject::Subject;

/// Existing versions of the format.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 1..=3;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let metadata = &subject.header.metadata;
    if !VERSIONS.contains(&subject.header.version) {
        sink.report(version_unknown(subject.header.version))?;
    }
    match Alignment::of(metadata) {
        Err(finding) => sink.report(finding.at(subject.value_at(alignment::KEY)))?,
        Ok(value) if value.get() < 8 => sink.report(
            Finding::warning("alignment-small", "the alignment is not a multiple of 8")
                .key(alignment::KEY)
                .at(subject.value_at(alignment::KEY))
                .help("the specification requires a multiple of 8; 32 is the default"),
        )?,
        Ok(_) => {}
    }
    architecture(subject, sink)
}

/// Returns the finding for a version that does not exist.
pub(crate) fn version_unknown(version: u32) -> Finding {
    Finding::error("version-unknown", format!("version {version} of the format does not exist"))
        .at(4)
        .help("versions 1 to 3 exist; a newer file needs a newer program")
}

fn architecture(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    const KEY: &str = "general.architecture";
    let finding = match subject.header.metadata.get(KEY) {
        None if !FileKind::detect(subject.header).has_architecture() => {
            return ControlFlow::Continue(());
        }
        None => Finding::warning("architecture-missing", "general.architecture is missing")
            .key(KEY)
            .help("loaders cannot interpret the tensors; set general.architecture"),
        Some(value) if value.as_str().is_none() => Finding::warning(
            "architecture-not-text",
            format!("is {} instead of a UTF-8 STRING", value.value_type()),
        )
        .key(KEY)
        .at(subject.value_at(KEY))
        .help("set general.architecture to a name such as llama"),
        Some(value) if !is_name(value.as_str().unwrap_or_default()) => Finding::warning(
            "architecture-name",
            "the architecture is not a name of lower-case letters, digits, `-` and `_`",
        )
        .key(KEY)
        .at(subject.value_at(KEY)),
        Some(_) => return ControlFlow::Continue(()),
    };
    sink.report(finding)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    !text.is_empty() && text.chars().all(allowed)
}
