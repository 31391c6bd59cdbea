//! Differences between the prompts of jinja2 and of llama.cpp's engine.

use gguf::{Finding, Severity};
use serde_json::{Map, Value as Json, json};

use super::super::{Context, Engine, Error, Renderer, TemplateSource};
use super::tool;
use super::upstream::unequal_parts;

const SYSTEM: &str = "Be brief.";
const USER: &str = "What time is it?";

/// A conversation on which the engines are compared.
struct Sample {
    name: &'static str,
    /// Whether programs have such conversations with every model: then a difference is a warning.
    is_ordinary: bool,
    context: Context,
}

/// Returns the conversations. Both engines get the variables that llama.cpp sets by itself, since another rule reports
/// their effect; content is text, since llama.cpp rewrites content in parts on purpose.
fn samples() -> Vec<Sample> {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let user = || said("user", USER);
    let call = json!({
        "id": "call_0001",
        "type": "function",
        "function": {"name": "clock", "arguments": {"zone": "UTC"}},
    });
    let round_trip = json!([
        user(),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0001", "name": "clock", "content": "12:00"},
    ]);
    let turns = json!([user(), said("assistant", "12:00."), said("user", "Thanks, 'you' & <I>.")]);
    let context = |messages: Json, tools: Json| Context {
        tools,
        variables: runtime_defaults(),
        ..Context::new(messages)
    };
    let tools = || json!([tool()]);
    let sample = |name, is_ordinary, context| Sample { name, is_ordinary, context };
    let ended = json!([user(), said("assistant", "12:00.")]);
    let ended = Context { add_generation_prompt: false, ..context(ended, Json::Null) };
    vec![
        sample("a message", true, context(json!([user()]), Json::Null)),
        sample(
            "a system prompt",
            true,
            context(json!([said("system", SYSTEM), user()]), Json::Null),
        ),
        sample("several turns", true, context(turns, Json::Null)),
        sample("no generation prompt", false, ended),
        sample("tools", false, context(json!([user()]), tools())),
        sample("a tool call", false, context(round_trip, tools())),
    ]
}

/// Returns the variables that llama.cpp sets without being asked.
fn runtime_defaults() -> Map<String, Json> {
    Map::from_iter([
        ("enable_thinking".to_owned(), true.into()),
        ("datetime".to_owned(), "Jan 02 2026".into()),
        ("date_string".to_owned(), "02 Jan 2026".into()),
    ])
}

/// Renders the conversations by both engines, and returns a finding about the first difference that matters most.
///
/// # Errors
/// If the rendering process fails.
pub(super) fn difference(
    renderer: &Renderer,
    source: &TemplateSource,
    llama_cpp: &TemplateSource,
) -> Result<Option<Finding>, Error> {
    let samples = samples();
    let contexts: Vec<_> = samples.iter().map(|sample| sample.context.clone()).collect();
    let render = |source: &TemplateSource| match renderer.render_each(source, &contexts) {
        Err(error @ Error::Process(_)) => Err(error),
        Err(error) => Ok(vec![Err(error)]),
        Ok(texts) => Ok(texts),
    };
    let (own, other) = (render(source)?, render(llama_cpp)?);
    let at = |texts: &[Result<String, Error>], at: usize| {
        // A template that does not parse gives one error for all.
        texts.get(at).or(texts.first().filter(|text| texts.len() == 1 && text.is_err())).cloned()
    };
    let ends = |text: String| llama_cpp.without_ends(&text).to_owned();
    let mut found = Vec::new();
    for (i, sample) in samples.iter().enumerate() {
        // A conversation that jinja2 refuses is no fault of the other engine.
        let Some(Ok(own)) = at(&own, i) else { continue };
        let Some(other) = at(&other, i) else { continue };
        found.extend(match other {
            Ok(other) => different(sample, &ends(own), &ends(other)),
            Err(error) => refused(sample.name, &error),
        });
    }
    let warning = found.iter().position(|finding| finding.severity == Severity::Warning);
    Ok(found.into_iter().nth(warning.unwrap_or(0)))
}

fn different(sample: &Sample, own: &str, other: &str) -> Option<Finding> {
    // A template for content in parts renders no texts with jinja2.
    if !own.contains(USER) {
        return None;
    }
    let (theirs, ours) = unequal_parts(other, own)?;
    let message = format!("for {} jinja2 renders {ours}, llama.cpp {theirs}", sample.name);
    // llama.cpp adds a system prompt that the template drops.
    let is_added = !own.contains(SYSTEM) && other.contains(SYSTEM);
    let finding = match sample.is_ordinary && !is_added {
        true => Finding::warning("template-llama-cpp", message),
        false => Finding::note("template-llama-cpp", message),
    };
    Some(finding.help("`gguf chat-template --engine llama.cpp` shows the prompt: the model gets another one than in training"))
}

fn refused(name: &str, error: &Error) -> Option<Finding> {
    if matches!(error, Error::Limit { .. } | Error::Process(_) | Error::NotText(_)) {
        return None;
    }
    let message = format!("llama.cpp refuses {name}, which jinja2 renders: {error}");
    let finding = Finding::warning("template-llama-cpp", message);
    Some(finding.help("programs of llama.cpp fail or use another template"))
}

/// Returns the source for llama.cpp.
pub(super) fn source(source: &TemplateSource, metadata: &gguf::Metadata) -> TemplateSource {
    source.clone().with_engine(Engine::LlamaCpp, metadata)
}
