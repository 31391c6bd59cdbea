//! Changes to templates and messages that llama.cpp makes for certain templates.

use serde_json::Value as Json;

use super::super::capabilities::Capabilities;
use super::{messages, refused};
use crate::jinja::Error;

/// Conditions that llama.cpp replaces by `false`: a text that the template must have, and the condition.
const PATCHES: [(&str, &str); 2] = [
    (
        "<|channel|>",
        "{%- if \"<|channel|>analysis<|message|>\" in message.content or \"<|channel|>final<|message|>\" in message.content %}",
    ),
    (
        "[TOOL_CALLS]",
        "{%- if (message['content'] is none or message['content'] == '' or message['content']|length == 0) and (message['tool_calls'] is not defined or message['tool_calls'] is none or message['tool_calls']|length == 0) %}",
    ),
];

/// Text of StepFun's template: messages lose white space at their ends.
const STEP_FUN: &str = "You have access to the following functions in JSONSchema format";

/// Returns the template without conditions that fail in llama.cpp.
pub fn patched(source: &str) -> String {
    PATCHES.iter().fold(source.to_owned(), |source, (text, condition)| {
        if source.contains(text) { source.replace(condition, "{%- if false %}") } else { source }
    })
}

/// Changes messages to what the template can render.
pub fn before(
    mut messages: Vec<Json>,
    source: &str,
    capabilities: &Capabilities,
) -> Result<Vec<Json>, Error> {
    if source.contains(STEP_FUN) {
        messages.iter_mut().for_each(trim);
    }
    messages = messages::normalized(messages, capabilities);
    if !source.contains("<|channel|>") {
        for message in &mut messages {
            if message["role"] == "developer" {
                message["role"] = "system".into();
            }
        }
    }
    if !capabilities.system_role && messages.first().is_some_and(|first| first["role"] == "system")
    {
        let system = messages.remove(0);
        if let Some(next) = messages.first_mut() {
            let (Some(first), Some(second)) =
                (system["content"].as_str(), next["content"].as_str())
            else {
                return refused(
                    "the template does not render system prompts, and llama.cpp joins strings only",
                );
            };
            next["content"] = format!("{first}\n{second}").into();
        }
    }
    if capabilities.object_arguments {
        let calls = messages.iter_mut().filter_map(|message| message.get_mut("tool_calls"));
        for call in calls.filter_map(Json::as_array_mut).flatten() {
            let arguments = &mut call["function"]["arguments"];
            let text = arguments.as_str().unwrap_or_default();
            let Ok(value) = serde_json::from_str(text) else {
                return refused("llama.cpp expects `arguments` of a tool call to be JSON");
            };
            *arguments = value;
        }
    }
    Ok(messages)
}

fn trim(message: &mut Json) {
    let trimmed = |text: &str| {
        Json::from(text.trim_matches(|char: char| char.is_ascii_whitespace() || char == '\u{b}'))
    };
    match message.get_mut("content") {
        Some(Json::Array(parts)) => {
            for part in parts.iter_mut().filter(|part| part["type"] == "text") {
                part["text"] = trimmed(part["text"].as_str().unwrap_or_default());
            }
        }
        Some(content) => *content = trimmed(content.as_str().unwrap_or_default()),
        None => {}
    }
    let Json::Object(fields) = message else { return };
    if let Some(Json::String(text)) = fields.get("reasoning_content") {
        match trimmed(text) {
            Json::String(text) if text.is_empty() => drop(fields.shift_remove("reasoning_content")),
            text => drop(fields.insert("reasoning_content".into(), text)),
        }
    }
}
