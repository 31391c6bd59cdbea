//! Texts in metadata keys other than the chat templates.

use gguf::{Array, Finding, Metadata};
use gguf_tokenizer::template::TemplateSource;

use crate::characters::{Suspicious, code_points};
use crate::instructions::{instruction, shortened};
use crate::{payload, template};

/// Length in bytes of a text that is more than a description.
const MAX_LEN: usize = 8192;

/// Arrays that the rules of vocabularies check.
const VOCABULARY: [&str; 2] = ["tokenizer.ggml.tokens", "tokenizer.ggml.merges"];

/// Keys whose values are other files, which are long.
const FILES: [&str; 2] = ["tokenizer.huggingface.json", "tokenizer.rwkv.world"];

/// Returns true for the key of a chat template.
pub fn is_template(key: &str) -> bool {
    key.strip_prefix(TemplateSource::KEY)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Checks the texts of a file.
pub fn check(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (key, value) in metadata.iter().filter(|(key, _)| !is_template(key)) {
        if let Some(text) = value.as_str() {
            let is_file = FILES.contains(&key);
            findings.extend(
                self::text(text, is_file || key.starts_with("general.")).map(|one| one.key(key)),
            );
            if text.len() > MAX_LEN && !is_file {
                let message = format!("has a text of {} bytes", text.len());
                findings.push(Finding::note("metadata-size", message).key(key));
            }
        } else if let Some(texts) = value.as_array().and_then(Array::strings)
            && !VOCABULARY.contains(&key)
        {
            let texts = texts.map(String::from_utf8_lossy);
            let found = texts.flat_map(|text| {
                self::text(&text, key.starts_with("general.")).collect::<Vec<_>>()
            });
            findings.extend(found.take(3).map(|one| one.key(key)));
        }
    }
    findings
}

/// Checks a text that is not a template. An address is expected in descriptions.
pub fn text(text: &str, has_addresses: bool) -> impl Iterator<Item = Finding> + use<> {
    let mut findings = Vec::new();
    let found = Suspicious::of(text);
    if found.conceals() {
        let chars = [&found.invisible[..], &found.bidirectional].concat();
        let message = format!("has invisible characters ({})", code_points(&chars));
        findings.push(Finding::warning("hidden-characters", message));
    }
    if let Some(sentence) = instruction(text) {
        findings.push(Finding::warning(
            "metadata-instruction",
            format!("has the instruction {sentence:?}"),
        ));
    }
    if !has_addresses && let Some(address) = payload::address(text) {
        let message = format!("has the address {:?}", shortened(address));
        findings.push(Finding::warning("metadata-address", message));
    }
    if (text.contains("{%") || text.contains("{{")) && text.len() < 1 << 20 {
        let is_escape = |finding: &Finding| {
            finding.code.starts_with("template-")
                && !matches!(finding.code, "template-unreadable" | "template-address")
        };
        findings.extend(template::audit(text).findings.into_iter().filter(is_escape));
    }
    findings.into_iter()
}
