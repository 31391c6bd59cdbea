//! Rules on metadata keys: length, spelling, duplicates.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::finding::{Finding, Sink};
use crate::rules::subject::Subject;

/// Maximum length of a key in bytes (specification, `gguf_metadata_kv_t`).
pub(crate) const MAX_LEN: usize = 65535;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut seen = HashSet::new();
    for (i, (key, _)) in subject.header.metadata.iter().enumerate() {
        let at = subject.entry_at(i);
        if let Some(finding) = spelling(key) {
            sink.report(finding.key(key).at(at))?;
        }
        if !seen.insert(key) {
            sink.report(
                Finding::error("key-duplicate", "the key occurs twice")
                    .key(key)
                    .at(at)
                    .help("remove one: loaders disagree on which one counts"),
            )?;
        }
    }
    ControlFlow::Continue(())
}

fn spelling(key: &str) -> Option<Finding> {
    if key.is_empty() {
        return Some(Finding::error("key-empty", "a key has no name"));
    }
    if key.len() > MAX_LEN {
        let message = format!("the key has {} bytes, {MAX_LEN} are allowed", key.len());
        return Some(Finding::error("key-too-long", message));
    }
    if !key.is_ascii() {
        return Some(Finding::warning("key-not-ascii", "the key is not ASCII"));
    }
    let segment_ok = |segment: &str| {
        let mut bytes = segment.bytes();
        bytes.len() > 0
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
    };
    (!key.split('.').all(segment_ok)).then(|| {
        Finding::warning("key-spelling", "the key is not lower_snake_case segments joined by dots")
    })
}
