//! Checks of the chat templates in a file.

mod engines;
mod prompts;
mod special;
mod upstream;

use std::collections::HashSet;
use std::time::Duration;

use gguf::{Finding, Metadata};
use prompts::Prompts;
use serde_json::{Value as Json, json};

use super::clock::Instant;
use super::{Context, Error, Limits, Renderer, TemplateSource};

/// Key that lists the names of further templates.
const NAMES: &str = "tokenizer.chat_templates";

/// Maximum number of steps for a sample of three messages.
const MAX_STEPS: u64 = 200_000;
/// Maximum length of the output of a sample.
const MAX_TEXT_LEN: usize = 1_000_000;
/// Time limit for all templates; a good one takes some milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// User message in every sample.
const USER_TEXT: &str = "gguf sample text";

/// Checks chat templates by rendering sample conversations.
///
/// All files checked by one `Linter` share ten seconds: after that no further template is rendered,
/// and a finding reports it.
#[derive(Debug)]
pub struct Linter {
    renderer: Renderer,
    left: Duration,
}

impl Linter {
    /// Creates a linter with this renderer and lower limits on output and steps.
    pub fn new(renderer: Renderer) -> Self {
        let limits = Limits { steps: MAX_STEPS, text_len: MAX_TEXT_LEN, ..*renderer.limits() };
        Self { renderer: renderer.with_limits(limits), left: TIME_LIMIT }
    }

    /// Sets the time limit for all templates.
    #[must_use]
    pub fn with_time_limit(self, time: Duration) -> Self {
        Self { left: time, ..self }
    }

    /// Checks the chat templates of a file: templates that are listed but missing, that are not
    /// valid Jinja, that fail with every sample conversation or exceed the limits with one, or that
    /// ignore the user's message; and prompts that do not fit the vocabulary: special tokens that it
    /// lacks, turns without control tokens, answers that do not end with an end token, a doubled BOS. The default
    /// template is also rendered by llama.cpp's engine, whose prompts must be equal.
    ///
    /// # Errors
    /// If the rendering process fails, which is not the template's fault.
    pub fn lint(&mut self, metadata: &Metadata) -> Result<Vec<Finding>, Error> {
        let mut findings = missing(metadata);
        findings.extend(no_template(metadata));
        let mut not_rendered = Vec::new();
        for key in metadata.iter().map(|(key, _)| key).filter(|key| TemplateSource::is_key(key)) {
            if self.left.is_zero() {
                not_rendered.push(key);
                continue;
            }
            let started = Instant::now();
            let found = self.check(metadata, key)?;
            findings.extend(found.into_iter().map(|finding| finding.key(key)));
            self.left = self.left.saturating_sub(started.elapsed());
        }
        if let [first, ..] = not_rendered[..] {
            let count = not_rendered.len();
            let message = format!("{count} templates from this one on were not rendered");
            findings.push(
                limited(message).key(first).help("the templates before it used up the time limit"),
            );
        }
        Ok(findings)
    }

    /// Checks one template.
    fn check(&self, metadata: &Metadata, key: &str) -> Result<Vec<Finding>, Error> {
        let is_named = key != TemplateSource::KEY;
        let samples = samples().map(|sample| if is_named { with_sources(sample) } else { sample });
        let samples: Vec<_> = samples.into_iter().chain(prompts::contexts()).collect();
        let source = match TemplateSource::from_key(metadata, key) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(source)) => Ok(source),
            Err(error) => Err(error),
        };
        let texts = source.as_ref().map_err(Error::clone);
        let texts = texts.and_then(|source| self.renderer.render_each(source, &samples));
        Ok(match texts {
            Ok(texts) => match verdict(&texts[..SAMPLES.min(texts.len())]) {
                Some(finding) => vec![finding],
                None => {
                    let prompts = Prompts::new(texts.get(SAMPLES..).unwrap_or_default());
                    let mut findings = prompts.findings(metadata);
                    // llama.cpp renders the default template only.
                    if let Some(source) = source.ok().filter(|_| !is_named) {
                        let llama_cpp = engines::source(&source, metadata);
                        findings.extend(engines::difference(&self.renderer, &source, &llama_cpp)?);
                    }
                    findings
                }
            },
            // Another rule reports a value of the wrong type.
            Err(Error::NotText(_)) => Vec::new(),
            Err(error @ Error::Process(_)) => return Err(error),
            Err(Error::Limit { limit, .. }) => vec![limit_finding(&limit)],
            Err(error) => {
                let finding = Finding::warning("template-syntax", error.to_string());
                vec![finding.help("programs that render the template refuse it")]
            }
        })
    }

    /// Compares the prompts of the default chat template with those of another template, which gets
    /// the special tokens of the file, on fixed conversations: several turns, tools, content in
    /// parts and others. Returns one finding per difference.
    ///
    /// # Errors
    /// If `upstream` does not parse, or the rendering process fails.
    pub fn compare(&self, metadata: &Metadata, upstream: &str) -> Result<Vec<Finding>, Error> {
        let Some(own) = TemplateSource::from_metadata(metadata, None)? else {
            let finding = Finding::warning(
                "template-missing",
                "upstream has a chat template, the file has none",
            );
            return Ok(vec![finding.key(TemplateSource::KEY)]);
        };
        let theirs =
            TemplateSource { tokens: own.tokens.clone(), ..TemplateSource::new(upstream)? };
        let contexts: Vec<_> =
            upstream::conversations().into_iter().map(|(_, context)| context).collect();
        let render = |source| self.renderer.render_each(source, &contexts);
        let found = upstream::differences(&own.text, &render(&own)?, &render(&theirs)?);
        Ok(found.into_iter().map(|finding| finding.key(TemplateSource::KEY)).collect())
    }

    /// Returns the id of the token by which the default chat template ends answers, if it should be
    /// an end token of the model and is none; `None` if there is nothing to repair.
    ///
    /// # Errors
    /// If the rendering process fails.
    pub fn wrong_end(&self, metadata: &Metadata) -> Result<Option<u32>, Error> {
        let Ok(Some(source)) = TemplateSource::from_metadata(metadata, None) else {
            return Ok(None);
        };
        match self.renderer.render_each(&source, &prompts::contexts()) {
            Ok(texts) => Ok(Prompts::new(&texts).wrong_end(metadata)),
            Err(error @ Error::Process(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// Reports templates that are listed but missing.
fn missing(metadata: &Metadata) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Use a set: both lists may be long.
    let present: HashSet<_> = metadata
        .iter()
        .filter_map(|(key, _)| key.strip_prefix(TemplateSource::KEY)?.strip_prefix('.'))
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

/// Evaluates the rendered samples of a template.
fn verdict(texts: &[Result<String, Error>]) -> Option<Finding> {
    if let Some(Err(Error::Limit { limit, .. })) = texts.last() {
        return Some(limit_finding(limit));
    }
    // One rendered sample is enough: a template may reject roles and tools.
    if texts.iter().flatten().any(|text| text.contains(USER_TEXT)) {
        return None;
    }
    let advice = "use the template of the original model";
    Some(match texts.iter().find_map(|text| text.as_ref().err()) {
        Some(error) if texts.iter().all(Result::is_err) => {
            let message = format!("fails on every sample conversation: {error}");
            Finding::warning("template-render", message).help(advice)
        }
        _ => {
            Finding::warning("template-ignores-messages", "ignores the user's message").help(advice)
        }
    })
}

fn limit_finding(limit: &str) -> Finding {
    limited(format!("needs more than {limit} to render")).help(
        "it may hang or exhaust programs that render it; use the template of the original model",
    )
}

fn limited(message: String) -> Finding {
    Finding::warning("template-limit", message)
}

/// Reports a model that was trained on conversations and has no template.
fn no_template(metadata: &Metadata) -> Option<Finding> {
    let has_text = metadata.array("tokenizer.ggml.tokens").is_some();
    if !has_text || metadata.get(TemplateSource::KEY).is_some() || !prompts::is_chat_model(metadata)
    {
        return None;
    }
    Some(
        Finding::warning("template-missing", "the model has no chat template")
            .key(TemplateSource::KEY)
            .help("programs guess a template: set that of the original model with `gguf edit --chat-template-file`"),
    )
}

/// Returns the definition of a tool.
fn tool() -> Json {
    json!({
        "type": "function",
        "function": {
            "name": "clock",
            "description": "Tells the time.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    })
}

/// Adds documents, and tools in the form of Command-R, which named templates for retrieval and for tools require.
fn with_sources(sample: Context) -> Context {
    let parameters =
        json!({"zone": {"type": "str", "description": "Time zone.", "required": false}});
    let mut tool = tool();
    tool["name"] = "clock".into();
    tool["description"] = "Tells the time.".into();
    tool["parameter_definitions"] = parameters;
    Context {
        tools: json!([tool]),
        documents: json!([{"title": "A title", "text": "A text."}]),
        ..sample
    }
}

/// Number of sample conversations.
const SAMPLES: usize = 6;

/// Returns sample conversations, the simplest first. Content is a string, or a list of parts as in
/// templates of multimodal models.
fn samples() -> [Context; SAMPLES] {
    let parts =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let plain = |role: &str, text: &str| json!({"role": role, "content": text});
    let with_tools = |messages: Json| Context { tools: json!([tool()]), ..Context::new(messages) };
    [
        Context::new(json!([plain("user", USER_TEXT)])),
        Context::new(json!([
            plain("user", USER_TEXT),
            plain("assistant", "A."),
            plain("user", "B.")
        ])),
        Context::new(json!([plain("system", "S."), plain("user", USER_TEXT)])),
        with_tools(json!([plain("user", USER_TEXT)])),
        with_tools(json!([plain("system", "S."), plain("user", USER_TEXT)])),
        Context::new(json!([parts("user", USER_TEXT)])),
    ]
}
