//! Rules about models in GGUF files.
//!
//! [`check`] runs the rules of the format (crate `gguf`), then those about models: keys that the schema
//! knows, tensors that the architecture has, tokenizer, quantization. [`check_shards`], [`check_name`]
//! and [`check_sidecar`] examine several files, a file name, and an mmproj file with its model.
//! [`fix`] repairs unambiguous faults. [`codes`] explains every code of the workspace.
//! [`json`] serializes findings and errors. [`key_value`] parses assignments of metadata keys and checks their values.

pub mod codes;
mod fix;
pub mod json;
pub mod key_value;
mod rules;

use std::ops::ControlFlow;
use std::path::Path;

pub use fix::{fix, fix_end, needs_end};
use gguf::{Bytes, Collector, Finding, RawHeader, Severity, Sink, Subject, shard_keys};
pub use rules::file_name::check_name;
pub use rules::sidecar::check_sidecar;

/// Checks the bytes of a file: returns all findings, and the header if it can be parsed.
///
/// Tensor data is not read.
pub fn check(bytes: &Bytes) -> (Vec<Finding>, Option<RawHeader>) {
    check_header(bytes, bytes.len() as u64)
}

/// Checks a file of `file_len` bytes that starts with `bytes` (see [`gguf::header_extent`]).
///
/// A header that is longer than `bytes` is an error among the findings.
pub fn check_header(bytes: &Bytes, file_len: u64) -> (Vec<Finding>, Option<RawHeader>) {
    gguf::check_header_with(bytes, file_len, rules::model_rules)
}

/// Checks a header that is not in a file.
pub fn check_raw_header(header: &RawHeader) -> Vec<Finding> {
    gguf::check_raw_header_with(header, rules::model_rules)
}

/// Checks the shards of a model together: [`gguf::check_shards`], and tensors that no shard has.
///
/// `shards` are file names and headers, the first shard first; a model in one file is one shard.
/// [`check`] examines each shard separately.
pub fn check_shards(shards: &[(&Path, &RawHeader)]) -> Vec<Finding> {
    let mut findings = gguf::check_shards(shards);
    // Shards of different models have no common tensors to check.
    if findings.iter().all(|finding| finding.severity < Severity::Error) {
        let mut sink = Collector::new();
        // The collector never breaks.
        let _ = tensors_of_all_shards(shards, &mut sink);
        findings.extend(sink.into_findings());
    }
    findings
}

/// Checks the tensors of all shards against the architecture.
fn tensors_of_all_shards(shards: &[(&Path, &RawHeader)], sink: &mut dyn Sink) -> ControlFlow<()> {
    let Some((_, first)) = shards.first() else { return ControlFlow::Continue(()) };
    // `check` examines a single file.
    if first.metadata.u64(shard_keys::COUNT).is_none_or(|count| count < 2) {
        return ControlFlow::Continue(());
    }
    let mut metadata = first.metadata.clone();
    shard_keys::remove(&mut metadata);
    let tensors = shards.iter().flat_map(|(_, header)| header.tensors.iter().cloned()).collect();
    let model = RawHeader { version: first.version, order: first.order, metadata, tensors };
    rules::architecture::tensors(&Subject::header_only(&model), sink)
}
