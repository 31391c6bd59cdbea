//! What is wrong with the chat templates of a file.

use gguf::{Finding, Metadata};
use serde_json::{Value as Json, json};

use super::{Context, Error, KEY, NAMES, Template};

/// Steps that a template may take for a sample, which has three messages.
const FUEL: u64 = 200_000;

/// The text of the user in every sample.
const TEXT: &str = "gguf sample text";

/// Everything that is wrong or odd about the chat templates of a file: templates that are listed
/// but missing, that are no Jinja, that fail with every sample conversation, or that leave out
/// what the user says.
pub fn lint(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in metadata.array(NAMES).and_then(gguf::Array::strings).into_iter().flatten() {
        let name = String::from_utf8_lossy(name);
        if metadata.get(&format!("{KEY}.{name}")).is_none() {
            let message = format!("lists the template {name:?}, which is not in the file");
            findings.push(
                Finding::warning("template-missing-name", message)
                    .key(NAMES)
                    .help("add the template, or remove its name"),
            );
        }
    }
    let prefix = format!("{KEY}.");
    for (key, _) in metadata.iter() {
        let name = key.strip_prefix(&prefix);
        if key == KEY || name.is_some() {
            findings.extend(fault(metadata, name).map(|finding| finding.key(key)));
        }
    }
    findings
}

/// What is wrong with one template.
fn fault(metadata: &Metadata, name: Option<&str>) -> Option<Finding> {
    let template = match Template::from_metadata(metadata, name) {
        Ok(template) => template?.with_fuel(FUEL),
        // A value of another type breaks a rule on keys.
        Err(Error::NotText(_)) => return None,
        Err(error) => {
            let finding = Finding::warning("template-syntax", error.to_string());
            return Some(finding.help("programs that render the template refuse it"));
        }
    };
    let mut first_error = None;
    let mut is_rendered = false;
    for context in samples() {
        match template.render(&context) {
            Ok(text) if text.contains(TEXT) => return None,
            Ok(_) => is_rendered = true,
            // A template that runs without end costs its whole limit with every sample.
            Err(error @ Error::Limit { .. }) => {
                first_error = Some(error);
                break;
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Some(match first_error {
        Some(error) if !is_rendered => {
            let message = format!("renders no sample conversation: {error}");
            Finding::warning("template-render", message)
                .help("take the template of the original model")
        }
        _ => Finding::warning("template-ignores-messages", "leaves out what the user says")
            .help("take the template of the original model"),
    })
}

/// Conversations from the plainest on; a template may refuse roles and lack tools, so one that
/// renders is enough. Content is a text, or a list of parts as in templates of models that see.
fn samples() -> impl Iterator<Item = Context> {
    let tool = json!({
        "type": "function",
        "function": {
            "name": "clock",
            "description": "Tells the time.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    });
    let parts =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let plain = |role: &str, text: &str| json!({"role": role, "content": text});
    let with_tools = |messages: Json| Context { tools: json!([tool]), ..Context::new(messages) };
    [
        Context::new(json!([plain("user", TEXT)])),
        Context::new(json!([plain("user", TEXT), plain("assistant", "A."), plain("user", "B.")])),
        Context::new(json!([plain("system", "S."), plain("user", TEXT)])),
        with_tools(json!([plain("user", TEXT)])),
        with_tools(json!([plain("system", "S."), plain("user", TEXT)])),
        Context::new(json!([parts("user", TEXT)])),
    ]
    .into_iter()
}
