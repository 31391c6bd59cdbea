//! Differences between the prompts of two templates.

use gguf::{Finding, Severity};
use serde_json::{Value as Json, json};

use super::super::{Context, Error};
use super::tool;

/// Words of a comment at the start of a template that was changed on purpose.
const CHANGED: &[&str] = &["fix", "fixes", "fixed", "patch", "patched", "modified", "corrected"];

/// Conversations on which templates are compared, with their names.
pub(super) fn conversations() -> Vec<(&'static str, Context)> {
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let plain = |messages: Json| Context::new(messages);
    let with_tools = |messages: Json| Context { tools: json!([tool()]), ..Context::new(messages) };
    let thinking = |value: bool| Context {
        variables: [("enable_thinking".to_owned(), value.into())].into_iter().collect(),
        ..Context::new(json!([said("user", "What is 2 + 2?")]))
    };
    let round_trip = |content: Json| {
        let call = json!({
            "id": "call_0001",
            "type": "function",
            "function": {"name": "clock", "arguments": {"zone": "UTC"}},
        });
        json!([
            said("system", "Be brief."),
            said("user", "What time is it?"),
            {"role": "assistant", "content": content, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_0001", "name": "clock", "content": "{\"time\": \"12:00\"}"},
        ])
    };
    let parts = json!([
        {"type": "text", "text": "Hello."},
        {"type": "text", "text": "Who are you?"},
    ]);
    let turns =
        json!([said("user", "Hello."), said("assistant", "Good day."), said("user", "Goodbye."),]);
    let ended = json!([said("user", "Hello."), said("assistant", "Good day.")]);
    vec![
        ("user", plain(json!([said("user", "Hello.")]))),
        ("system", plain(json!([said("system", "Be brief."), said("user", "Hello.")]))),
        ("turns", plain(turns)),
        ("tools", with_tools(json!([said("user", "What time is it?")]))),
        ("tool call", with_tools(round_trip(json!("")))),
        ("tool call without content", with_tools(round_trip(Json::Null))),
        ("content in parts", plain(json!([{"role": "user", "content": parts}]))),
        ("thinking", thinking(true)),
        ("no thinking", thinking(false)),
        ("no generation prompt", Context { add_generation_prompt: false, ..plain(ended) }),
    ]
}

/// Prompts or errors of a template.
type Prompts = [Result<String, Error>];

/// Returns one finding per difference, with the conversations that have it. `text` is the template of the file.
pub(super) fn differences(text: &str, own: &Prompts, upstream: &Prompts) -> Vec<Finding> {
    let mut found: Vec<(Severity, String, Vec<&str>)> = Vec::new();
    for ((name, _), (own, upstream)) in conversations().into_iter().zip(own.iter().zip(upstream)) {
        let Some((severity, difference)) = difference(own, upstream) else { continue };
        match found.iter_mut().find(|(_, known, _)| *known == difference) {
            Some((_, _, names)) => names.push(name),
            None => found.push((severity, difference, vec![name])),
        }
    }
    let is_announced = is_announced(text);
    let finding = |(severity, difference, names): (Severity, String, Vec<&str>)| {
        let severity = if is_announced { Severity::Note } else { severity };
        let message = format!("{difference} ({})", names.join(", "));
        Finding { severity, ..Finding::error("prompt-differs", message) }.help(
            "the model gets another prompt than in training, unless its publisher corrected the template",
        )
    };
    found.into_iter().map(finding).collect()
}

/// Whether a comment at the start of the template says that it was changed.
fn is_announced(text: &str) -> bool {
    /// Length in which publishers announce changes, in characters.
    const START: usize = 800;
    let start: String = text.chars().take(START).collect();
    let comments = start.split("{#").skip(1).filter_map(|rest| rest.split("#}").next());
    let mut words = comments.flat_map(|comment| {
        comment.split(|char: char| !char.is_alphanumeric()).map(str::to_lowercase)
    });
    words.any(|word| CHANGED.contains(&&*word))
}

/// Returns severity and description of the difference between two prompts; `None` if there is none.
fn difference(
    own: &Result<String, Error>,
    upstream: &Result<String, Error>,
) -> Option<(Severity, String)> {
    match (own, upstream) {
        (Ok(own), Ok(upstream)) => {
            let without_space = |text: &str| text.split_whitespace().collect::<String>();
            let (severity, only) = match without_space(own) == without_space(upstream) {
                true => (Severity::Note, " only in white space"),
                false => (Severity::Warning, ""),
            };
            let (theirs, ours) = unequal_parts(upstream, own)?;
            Some((
                severity,
                format!("the prompt differs{only}: upstream {theirs}, the file {ours}"),
            ))
        }
        (Err(error), Ok(_)) => Some((
            Severity::Warning,
            format!("the template fails where that of upstream does not: {error}"),
        )),
        (Ok(_), Err(error)) => {
            Some((Severity::Note, format!("the template of upstream fails: {error}")))
        }
        (Err(_), Err(_)) => None,
    }
}

/// Returns the parts of two texts between their common start and end, quoted; `None` for equal texts.
pub(super) fn unequal_parts(a: &str, b: &str) -> Option<(String, String)> {
    /// Characters before the difference that are shown.
    const BEFORE: usize = 12;
    if a == b {
        return None;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let first = start.saturating_sub(BEFORE);
    Some((quoted(&a[first..a.len() - end]), quoted(&b[first..b.len() - end])))
}

/// Quotes a text, shortened.
fn quoted(text: &[char]) -> String {
    const SHOWN: usize = 80;
    let shown: String = text.iter().take(SHOWN).collect();
    if text.len() > SHOWN { format!("{shown:?}...") } else { format!("{shown:?}") }
}
