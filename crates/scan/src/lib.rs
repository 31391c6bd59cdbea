//! Scan of models for manipulation: chat templates, vocabularies, metadata and the files of a checkpoint.
//!
//! Chat templates are programs that run in the user's trust. [`scan_metadata`] reads the syntax tree of every template of a
//! file without rendering it: attributes and calls that lead out of a sandbox, text that appears only for certain words or
//! dates, hidden characters. It then renders many conversations and dates in the sandbox of `gguf-tokenizer`, and compares the
//! results. [`scan_directory`] reads the files beside the weights. [`difference`] compares a template with that of the base
//! model.
//!
//! ```
//! # fn main() -> Result<(), gguf::Error> {
//! use gguf_tokenizer::template::Renderer;
//! let mut metadata = gguf::Metadata::new();
//! metadata.set("tokenizer.chat_template", "{{ messages[0].content.__globals__ }}");
//! // Templates of unknown origin need `Renderer::process`.
//! let findings = gguf_scan::scan_metadata(&metadata, &Renderer::in_process())?;
//! assert!(findings.iter().any(|finding| finding.code == "template-escape"));
//! # Ok(())
//! # }
//! ```

mod characters;
mod checkpoint;
mod difference;
mod instructions;
mod jinja;
mod llama_cpp;
mod metadata;
mod payload;
mod template;
mod vocabulary;

pub use checkpoint::{NamedTemplate, is_checkpoint, scan_directory, templates};
pub use difference::difference;
use gguf::{Error, Finding, Metadata};
use gguf_tokenizer::template::{Linter, Renderer, TemplateSource};
use llama_cpp::unknown_to_llama_cpp;
use template::Probes;

/// Advice of all findings.
const HELP: &str =
    "read the place before you use the file; `gguf check --explain CODE` says what it means";

/// Scans the chat templates, the vocabulary and the texts of a file. `renderer` renders the templates.
///
/// # Errors
/// If the rendering process fails.
pub fn scan_metadata(metadata: &Metadata, renderer: &Renderer) -> Result<Vec<Finding>, Error> {
    let probes = Probes::new(renderer);
    let mut findings = Vec::new();
    for (key, value) in metadata.iter().filter(|(key, _)| metadata::is_template(key)) {
        let Some(text) = value.as_str() else { continue };
        let audit = template::audit(text);
        // The audit reports templates that are too long to render.
        let mut found = match TemplateSource::from_key(metadata, key) {
            Ok(Some(source)) => probes.check(&source, &audit)?,
            _ => Vec::new(),
        };
        found.extend(audit.findings);
        found.extend(vocabulary::imitated_mark(metadata, text));
        findings.extend(found.into_iter().map(|finding| finding.key(key)));
    }
    findings.extend(vocabulary::check(metadata));
    findings.extend(metadata::check(metadata));
    Ok(with_help(findings))
}

/// Returns the findings about the chat templates of a file that need no scan: those of `linter`, and parts that llama.cpp's
/// engine does not know.
///
/// # Errors
/// If the rendering process fails.
pub fn template_findings(metadata: &Metadata, linter: &mut Linter) -> Result<Vec<Finding>, Error> {
    let mut findings = linter.lint(metadata)?;
    let mut unknown = unknown_to_llama_cpp(metadata);
    // A warning about a rendered conversation says more than one about the template's text.
    unknown.retain(|finding| {
        !findings.iter().any(|other| {
            (other.code, &other.key, other.severity)
                == (finding.code, &finding.key, finding.severity)
        })
    });
    findings.extend(unknown);
    Ok(findings)
}

/// Adds the advice that all findings of a scan have.
pub fn with_help(findings: Vec<Finding>) -> Vec<Finding> {
    let with =
        |finding: Finding| if finding.help.is_empty() { finding.help(HELP) } else { finding };
    findings.into_iter().map(with).collect()
}
