//! Chat templates of a checkpoint.

use gguf::{Error, Finding};
use gguf_tokenizer::template::{Renderer, TemplateSource};
use serde_json::Value as Json;

use super::in_file;
use super::tokenizer::Vocabulary;
use crate::difference::difference;
use crate::template::{self, Probes};

/// A chat template with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTemplate {
    /// File that has the template.
    pub file: &'static str,
    /// Name of the template; empty for the default one.
    pub name: String,
    /// Jinja text.
    pub text: String,
}

/// Returns the chat templates of a checkpoint, those that take precedence first. `read` returns the bytes of a file; `None` if
/// it does not exist.
///
/// # Errors
/// If a file cannot be read.
pub fn templates(
    read: impl Fn(&str) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Vec<NamedTemplate>, Error> {
    let mut found = Vec::new();
    if let Some(bytes) = read("chat_template.jinja")? {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        found.push(NamedTemplate { file: "chat_template.jinja", name: String::new(), text });
    }
    for file in ["chat_template.json", "tokenizer_config.json", "processor_config.json"] {
        let Some(bytes) = read(file)? else { continue };
        // Another rule reports invalid JSON.
        let Ok(document) = serde_json::from_slice::<Json>(&bytes) else { continue };
        let template = |name: &str, text: &str| NamedTemplate {
            file,
            name: name.to_owned(),
            text: text.to_owned(),
        };
        match &document["chat_template"] {
            Json::String(text) => found.push(template("", text)),
            Json::Array(list) => found.extend(list.iter().filter_map(|entry| {
                let name = entry["name"].as_str().unwrap_or_default();
                let name = if name == "default" { "" } else { name };
                Some(template(name, entry["template"].as_str()?))
            })),
            Json::Object(map) => found.extend(map.iter().filter_map(|(name, text)| {
                let name = if name == "default" { "" } else { name };
                Some(template(name, text.as_str()?))
            })),
            _ => {}
        }
    }
    Ok(found)
}

/// Checks templates, and that those of the same name in several files are equal.
pub fn check(
    templates: &[NamedTemplate],
    vocabulary: &Vocabulary,
    renderer: &Renderer,
) -> Result<Vec<Finding>, Error> {
    let probes = Probes::new(renderer);
    let mut findings = Vec::new();
    for (at, template) in templates.iter().enumerate() {
        let place = match &*template.name {
            "" => template.file.to_owned(),
            name => format!("{}: template {name:?}", template.file),
        };
        let audit = template::audit(&template.text);
        let mut found = match TemplateSource::new(&template.text) {
            Ok(source) => probes.check(&source, &audit)?,
            // The audit reports templates that are too long.
            Err(_) => Vec::new(),
        };
        found.extend(audit.findings);
        found.extend(vocabulary.imitated_mark(&template.text));
        let earlier = templates[..at].iter().find(|other| other.name == template.name);
        if let Some(earlier) = earlier
            && let Some(finding) = difference(&template.text, &earlier.text)
        {
            let what = format!("the template of {}", earlier.file);
            let message = finding.message.replace("the template of the base model", &what);
            found.push(Finding { message: message.into(), ..finding });
        }
        findings.extend(found.into_iter().map(|finding| in_file(finding, &place)));
    }
    Ok(findings)
}
