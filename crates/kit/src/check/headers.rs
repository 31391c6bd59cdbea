//! Findings about the headers of files, valid or not.

use std::path::Path;

use gguf::{Bytes, Finding, RawHeader};
use gguf_check::check_shards;
use gguf_graph::{Limits, stored};
use gguf_models::GraphSource;
use gguf_store::byte_parts;
use gguf_tokenizer::template::{Linter, Renderer};

use crate::Error;

/// A file whose header may be invalid.
#[derive(Clone, Copy)]
pub(crate) struct Checkable<'a> {
    /// Name or path.
    pub name: &'a Path,
    /// Start of the file, at least its header.
    pub header: &'a Bytes,
    /// File size in bytes.
    pub file_len: u64,
}

impl Checkable<'_> {
    /// Returns the findings about the header, and the header as far as it can be read.
    fn check(&self) -> (Vec<Finding>, Option<RawHeader>) {
        let (findings, draft) = gguf_check::check_header(self.header, self.file_len);
        let explain = |finding| byte_parts::explain(finding, self.name);
        let mut findings: Vec<Finding> = findings.into_iter().map(explain).collect();
        if let (Some(draft), Some(name)) = (&draft, self.name.file_name()) {
            findings.extend(gguf_check::check_name(&name.to_string_lossy(), draft));
        }
        (findings, draft)
    }
}

/// Returns the findings about each file, and about all shards together.
pub(crate) fn findings_of(files: &[Checkable], renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let mut templates = Linter::new(renderer.clone());
    let mut drafts = Vec::new();
    for file in files {
        let (found, draft) = file.check();
        let metadata = draft.as_ref().map(|draft| &draft.metadata);
        let template_findings = metadata
            .map(|metadata| gguf_scan::template_findings(metadata, &mut templates))
            .transpose()?;
        let graph_finding = draft.as_ref().filter(|_| files.len() == 1).and_then(stale_graph);
        let template_findings = template_findings.unwrap_or_default();
        let found = found.into_iter().chain(template_findings).chain(graph_finding);
        findings.extend(found.map(|finding| match files.len() {
            1 => finding,
            _ => in_file(finding, file.name),
        }));
        drafts.extend(draft.map(|draft| (file.name, draft)));
    }
    // An unreadable shard would cause findings about the others.
    if drafts.len() == files.len() {
        let drafts: Vec<_> = drafts.iter().map(|(path, draft)| (*path, draft)).collect();
        findings.extend(check_shards(&drafts));
    }
    Ok(findings)
}

/// Compares a stored graph with that of the architecture.
fn stale_graph(header: &RawHeader) -> Option<Finding> {
    let metadata = &header.metadata;
    let stored = stored::stored(metadata, Limits::default()).ok()??;
    let built = gguf_models::model_graph(metadata, &header.tensors, GraphSource::Built).ok()?;
    if stored.raw() == built.raw() {
        return None;
    }
    let message = "the stored graph is not that of the architecture";
    let finding = Finding::warning("graph-differs", message).key(stored::GRAPH_KEY);
    Some(finding.help("store it again with `gguf graph --store`, or remove it, unless the model needs another graph"))
}

/// Adds the file name to a finding.
fn in_file(finding: Finding, path: &Path) -> Finding {
    let message = format!("{}: {}", path.display(), finding.message).into();
    Finding { message, ..finding }
}
