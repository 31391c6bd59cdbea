//! Messages and tools in the form in which templates see them.

use serde_json::{Map, Value as Json, json};

use super::super::capabilities::Capabilities;
use super::refused;
use crate::jinja::Error;

/// Reads messages of the OpenAI API: known fields only, content as a string or a list of text parts, arguments of calls
/// as JSON text.
pub fn read(messages: &Json) -> Result<Vec<Json>, Error> {
    let Json::Array(messages) = messages else {
        return refused("llama.cpp expects a list of messages");
    };
    messages.iter().map(message).collect()
}

/// Returns a string field.
fn string(object: &Json, name: &str) -> Result<String, Error> {
    match object.get(name) {
        Some(Json::String(text)) => Ok(text.clone()),
        Some(_) => refused(format!("llama.cpp expects `{name}` of a message to be a string")),
        None => refused(format!("llama.cpp expects `{name}` in a message")),
    }
}

fn message(message: &Json) -> Result<Json, Error> {
    let mut out = Map::new();
    out.insert("role".into(), string(message, "role")?.into());
    let (content, calls) = (message.get("content"), message.get("tool_calls"));
    if content.is_none() && calls.is_none() {
        return refused("llama.cpp expects `content` or `tool_calls` in a message");
    }
    let content = match content {
        None | Some(Json::Null) => "".into(),
        Some(Json::String(text)) => text.as_str().into(),
        Some(Json::Array(parts)) => parts_content(parts)?,
        Some(_) => return refused("llama.cpp expects content to be a string or a list of parts"),
    };
    out.insert("content".into(), content);
    for name in ["reasoning_content", "name", "tool_call_id"] {
        if message.get(name).is_some() {
            let text = string(message, name)?;
            if !text.is_empty() {
                out.insert(name.into(), text.into());
            }
        }
    }
    let calls = match calls {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(calls)) => calls.iter().map(call).collect::<Result<_, _>>()?,
        Some(_) => return refused("llama.cpp expects `tool_calls` to be a list"),
    };
    if !calls.is_empty() {
        out.insert("tool_calls".into(), calls.into());
    }
    Ok(out.into())
}

fn parts_content(parts: &[Json]) -> Result<Json, Error> {
    let mut out = Vec::new();
    for part in parts {
        let kind = string(part, "type")?;
        if kind != "text" && kind != "media_marker" {
            return refused(format!("llama.cpp does not know content parts of type `{kind}`"));
        }
        out.push(json!({"type": kind, "text": string(part, "text")?}));
    }
    Ok(match out.iter().any(|part| part["type"] == "media_marker") {
        _ if out.is_empty() => "".into(),
        true => joined(&out).into(),
        false => out.into(),
    })
}

fn call(call: &Json) -> Result<Json, Error> {
    if string(call, "type")? != "function" {
        return refused("llama.cpp knows tool calls of type `function` only");
    }
    let Some(function) = call.get("function") else {
        return refused("llama.cpp expects `function` in a tool call");
    };
    let arguments = match function.get("arguments") {
        Some(Json::String(text)) => text.clone(),
        Some(other) => compact(other),
        None => return refused("llama.cpp expects `arguments` in a tool call"),
    };
    let mut out = Map::new();
    out.insert("type".into(), "function".into());
    let function = json!({"name": string(function, "name")?, "arguments": arguments});
    out.insert("function".into(), function);
    if call.get("id").is_some() {
        let id = string(call, "id")?;
        if !id.is_empty() {
            out.insert("id".into(), id.into());
        }
    }
    Ok(out.into())
}

/// Reads tools of the OpenAI API: name, description and parameters only.
pub fn tools(tools: &Json) -> Result<Vec<Json>, Error> {
    let tools = match tools {
        Json::Null => return Ok(Vec::new()),
        Json::Array(tools) => tools,
        _ => return refused("llama.cpp expects a list of tools"),
    };
    let tool = |tool: &Json| {
        if string(tool, "type")? != "function" {
            return refused("llama.cpp knows tools of type `function` only");
        }
        let Some(function) = tool.get("function") else {
            return refused("llama.cpp expects `function` in a tool");
        };
        let description = match function.get("description") {
            None => String::new(),
            Some(_) => string(function, "description")?,
        };
        let parameters = function.get("parameters").cloned().unwrap_or_else(|| json!({}));
        Ok(json!({
            "type": "function",
            "function": {
                "name": string(function, "name")?,
                "description": description,
                "parameters": parameters,
            },
        }))
    };
    tools.iter().map(tool).collect()
}

/// Converts content to the form that the template reads: a string, or a list of parts.
pub fn normalized(messages: Vec<Json>, capabilities: &Capabilities) -> Vec<Json> {
    let Capabilities { string_content, typed_content, .. } = *capabilities;
    let convert = |mut message: Json| {
        if let Some(content) = message.get_mut("content") {
            match content {
                Json::Array(parts) if string_content && !typed_content => {
                    *content = joined(parts).into();
                }
                Json::String(text) if typed_content && !string_content => {
                    *content = json!([{"type": "text", "text": text}]);
                }
                _ => {}
            }
        }
        message
    };
    messages.into_iter().map(convert).collect()
}

/// Joins the texts of parts with line breaks, but none around images.
fn joined(parts: &[Json]) -> String {
    let mut out = String::new();
    let mut after_media = false;
    for part in parts {
        let is_media = part["type"] == "media_marker";
        if !is_media && part["type"] != "text" {
            continue;
        }
        if !is_media && !after_media && !out.is_empty() {
            out.push('\n');
        }
        after_media = is_media;
        out += part["text"].as_str().unwrap_or_default();
    }
    out
}

/// Writes JSON without spaces, with floats as llama.cpp prints them.
fn compact(value: &Json) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(compact).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(items) => {
            let item = |(key, value): (&String, &Json)| {
                format!("{}:{}", Json::from(key.as_str()), compact(value))
            };
            let items: Vec<_> = items.iter().map(item).collect();
            format!("{{{}}}", items.join(","))
        }
        Json::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), float)
        }
        other => other.to_string(),
    }
}

/// Prints a float with the fewest digits that identify it, decimally from 1e-4 below 1e15.
fn float(value: f64) -> String {
    if (1e-4..1e15).contains(&value.abs()) || value == 0.0 {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compact_json() {
        let value = json!({"a": [1, 2.5, 1e20, 1e-7, 100.0], "b": "ä\"", "c": null});
        assert_eq!(compact(&value), r#"{"a":[1,2.5,1e+20,1e-07,100.0],"b":"ä\"","c":null}"#);
    }
}
