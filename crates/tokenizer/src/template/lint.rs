//! What is wrong with the chat templates of a file.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use gguf::{Finding, Metadata};
use serde_json::{Value as Json, json};

use super::{Context, Error, Limits, Renderer, Source};

/// The key of the list of names of further templates.
const NAMES: &str = "tokenizer.chat_templates";

/// Steps that a template may take for a sample, which has three messages.
const STEPS: u64 = 200_000;
/// Bytes of text of a sample.
const TEXT_LEN: usize = 1_000_000;
/// Time for all templates, of which those that are good take some milliseconds each.
const TIME: Duration = Duration::from_secs(10);

/// The text of the user in every sample.
const TEXT: &str = "gguf sample text";

/// Finds what is wrong with chat templates, by rendering them.
///
/// The files that one `Linter` looks at have ten seconds together: no other template is begun
/// after these, and a finding says so.
#[derive(Debug)]
pub struct Linter {
    renderer: Renderer,
    left: Duration,
}

impl Linter {
    /// One that renders by this renderer, with less text and fewer steps.
    pub fn new(renderer: Renderer) -> Self {
        let limits = Limits { steps: STEPS, text_len: TEXT_LEN, ..*renderer.limits() };
        Self { renderer: renderer.with_limits(limits), left: TIME }
    }

    /// The same with this time for all templates.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        Self { left: time, ..self }
    }

    /// Everything that is wrong or odd about the chat templates of a file: templates that are
    /// listed but missing, that are no Jinja, that fail with every sample conversation or take more
    /// than they may with one, or that leave out what the user says.
    ///
    /// # Errors
    /// If the process that renders fails, for which the templates are not to blame.
    pub fn lint(&mut self, metadata: &Metadata) -> Result<Vec<Finding>, Error> {
        let mut findings = missing(metadata);
        let mut not_rendered = Vec::new();
        for key in metadata.iter().map(|(key, _)| key).filter(|key| Source::is_key(key)) {
            if self.left.is_zero() {
                not_rendered.push(key);
                continue;
            }
            let started = Instant::now();
            findings.extend(self.fault(metadata, key)?.map(|finding| finding.key(key)));
            self.left = self.left.saturating_sub(started.elapsed());
        }
        if let [first, ..] = not_rendered[..] {
            let count = not_rendered.len();
            let message = format!("{count} templates from this one on are not rendered");
            findings.push(
                limited(message)
                    .key(first)
                    .help("those before took all the time that there is for the templates"),
            );
        }
        Ok(findings)
    }

    /// What is wrong with one template.
    fn fault(&self, metadata: &Metadata, key: &str) -> Result<Option<Finding>, Error> {
        let texts = match Source::of_key(metadata, key) {
            Ok(None) => return Ok(None),
            Ok(Some(source)) => self.renderer.render_each(&source, &samples()),
            Err(error) => Err(error),
        };
        Ok(match texts {
            Ok(texts) => verdict(&texts),
            // A value of another type breaks a rule on keys.
            Err(Error::NotText(_)) => None,
            Err(error @ Error::Process(_)) => return Err(error),
            Err(Error::Limit { limit, .. }) => Some(needs(&limit)),
            Err(error) => {
                let finding = Finding::warning("template-syntax", error.to_string());
                Some(finding.help("programs that render the template refuse it"))
            }
        })
    }
}

/// Templates that are listed but missing.
fn missing(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Both may be many.
    let present: HashSet<_> = metadata
        .iter()
        .filter_map(|(key, _)| key.strip_prefix(Source::KEY)?.strip_prefix('.'))
        .collect();
    for name in metadata.array(NAMES).and_then(gguf::Array::strings).into_iter().flatten() {
        let name = String::from_utf8_lossy(name);
        if !present.contains(&*name) {
            let message = format!("lists the template {name:?}, which is not in the file");
            findings.push(
                Finding::warning("template-missing-name", message)
                    .key(NAMES)
                    .help("add the template, or remove its name"),
            );
        }
    }
    findings
}

/// What the texts of the samples say of a template.
fn verdict(texts: &[Result<String, Error>]) -> Option<Finding> {
    if let Some(Err(Error::Limit { limit, .. })) = texts.last() {
        return Some(needs(limit));
    }
    // One that renders is enough: a template may refuse roles and lack tools.
    if texts.iter().flatten().any(|text| text.contains(TEXT)) {
        return None;
    }
    let of_original = "take the template of the original model";
    Some(match texts.iter().find_map(|text| text.as_ref().err()) {
        Some(error) if texts.iter().all(Result::is_err) => {
            let message = format!("renders no sample conversation: {error}");
            Finding::warning("template-render", message).help(of_original)
        }
        _ => Finding::warning("template-ignores-messages", "leaves out what the user says")
            .help(of_original),
    })
}

fn needs(limit: &str) -> Finding {
    limited(format!("renders only with more than {limit}")).help(
        "it may hang or exhaust programs that render it; take the template of the original model",
    )
}

fn limited(message: String) -> Finding {
    Finding::warning("template-limit", message)
}

/// Conversations from the plainest on. Content is a text, or a list of parts as in templates of
/// models that see.
fn samples() -> [Context; 6] {
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
}
