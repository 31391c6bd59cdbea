//! What the rules find in the headers of files, which may be faulty ones.

use std::path::Path;

use gguf::{Bytes, Finding, RawHeader};
use gguf_check::check_shards;
use gguf_tokenizer::template::{Linter, Renderer};

use crate::Error;

/// A file whose header need not be a valid one.
#[derive(Clone, Copy)]
pub(crate) struct Checkable<'a> {
    /// Its name or path.
    pub name: &'a Path,
    /// At least its header.
    pub header: &'a Bytes,
    /// Bytes of the whole file.
    pub file_len: u64,
}

impl Checkable<'_> {
    /// Everything that the rules find in the header, and the header as far as it can be read.
    fn check(&self) -> (Vec<Finding>, Option<RawHeader>) {
        let (mut findings, draft) = gguf_check::check_header(self.header, self.file_len);
        if let (Some(draft), Some(name)) = (&draft, self.name.file_name()) {
            findings.extend(gguf_check::check_name(&name.to_string_lossy(), draft));
        }
        (findings, draft)
    }
}

/// What the rules find in each file, and in all of them together.
pub(crate) fn findings_of(files: &[Checkable], renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let mut templates = Linter::new(renderer.clone());
    let mut drafts = Vec::new();
    for file in files {
        let (found, draft) = file.check();
        let metadata = draft.as_ref().map(|draft| &draft.metadata);
        let of_templates = metadata.map(|metadata| templates.lint(metadata)).transpose()?;
        let found = found.into_iter().chain(of_templates.unwrap_or_default());
        findings.extend(found.map(|finding| match files.len() {
            1 => finding,
            _ => in_file(finding, file.name),
        }));
        drafts.extend(draft.map(|draft| (file.name, draft)));
    }
    // With one of them unreadable, the others would be blamed for it.
    if drafts.len() == files.len() {
        let drafts: Vec<_> = drafts.iter().map(|(path, draft)| (*path, draft)).collect();
        findings.extend(check_shards(&drafts));
    }
    Ok(findings)
}

/// Of several files, which one.
fn in_file(finding: Finding, path: &Path) -> Finding {
    let message = format!("{}: {}", path.display(), finding.message).into();
    Finding { message, ..finding }
}
