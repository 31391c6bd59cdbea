//! Families of templates whose messages or prompts llama.cpp changes (`common/parsers`). It recognises a family by
//! texts in the template.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

/// A family, in the order in which llama.cpp tries them. Those that change nothing only end the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Ministral3,
    GptOss,
    MuseGlimmer,
    Lfm2,
    DeepSeekV4,
    /// Gemma 4 with results of tools as messages.
    Gemma4,
    /// Gemma 4 with results of tools in the message of the call.
    Gemma4Responses,
    Other,
}

impl Family {
    /// Returns the family of a template; `None` if llama.cpp analyses it by samples.
    pub fn of(source: &str) -> Option<Self> {
        let has = |texts: &[&str]| texts.iter().all(|text| source.contains(text));
        let is_ministral =
            has(&["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"]) && !has(&["[CALL_ID]"]);
        let is_lfm2 = has(&["<|tool_list_start|>", "<|tool_list_end|>"]);
        let is_lfm25 = has(&["List of tools: ["]) && !has(&["<|tool_list_start|>"]);
        let is_gigachat = has(&["<|role_sep|>", "<|message_sep|>"]) && !has(&["<|function_call|>"]);
        let is_deepseek =
            has(&["dsml_token", "DSML"]) && (has(&["function_calls"]) || has(&["tool_calls"]));
        let is_new_gemma = has(&["{#- OpenAI Chat Completions:"]);
        let rows = [
            (is_ministral, Self::Ministral3),
            (has(&["<|channel|>"]), Self::GptOss),
            (has(&["<atem:function_calls>", "<|eom|>"]), Self::MuseGlimmer),
            (has(&[">>>all", ">>>${recipient}"]), Self::Other),
            (has(&["<|tool_calls_section_begin|>", "<|tool_call_begin|>"]), Self::Other),
            (has(&["<|open|>", "<|close|>", "<|end_of_msg|>"]), Self::Other),
            (has(&["<role>ASSISTANT</role>", "<arg_key>"]), Self::Other),
            (has(&["<|START_TEXT|>", "<|START_ACTION|>"]), Self::Other),
            (is_lfm2 || is_lfm25, Self::Lfm2),
            (is_gigachat, Self::Other),
            (has(&["]<]minimax[>[", "<tool_call>", "<invoke name="]), Self::Other),
            (is_deepseek && has(&["function_calls"]), Self::Other),
            (is_deepseek, Self::DeepSeekV4),
            (has(&["'<|tool_call>call:'"]) && is_new_gemma, Self::Gemma4),
            (has(&["'<|tool_call>call:'"]), Self::Gemma4Responses),
        ];
        rows.into_iter().find(|(is_family, _)| *is_family).map(|(_, family)| family)
    }

    /// Whether llama.cpp leaves the content of changed messages as it is.
    pub fn keeps_parts(self) -> bool {
        matches!(self, Self::Ministral3 | Self::GptOss | Self::Lfm2 | Self::DeepSeekV4)
    }
}

/// Changes the messages of a family.
pub fn before(messages: Vec<Json>, family: Option<Family>) -> Vec<Json> {
    match family {
        Some(Family::Ministral3) => messages.into_iter().map(thinking_part).collect(),
        Some(Family::GptOss) => messages.into_iter().map(|it| thinking_field(it, true)).collect(),
        Some(Family::Lfm2) => messages.into_iter().map(|it| thinking_field(it, false)).collect(),
        Some(Family::DeepSeekV4) => sorted_results(messages),
        Some(Family::Gemma4Responses) => tool_responses(&messages),
        _ => messages,
    }
}

/// Changes the prompt of a family.
pub fn after(prompt: String, family: Option<Family>, generates: bool) -> String {
    match family {
        Some(Family::GptOss) if !generates => match prompt.rsplit_once("<|return|>") {
            Some((before, after)) => format!("{before}<|end|>{after}"),
            None => prompt,
        },
        Some(Family::Gemma4 | Family::Gemma4Responses)
            if generates && prompt.ends_with("<turn|>\n") =>
        {
            prompt + "<|turn>model\n"
        }
        _ => prompt,
    }
}

/// Content of system and assistant messages as parts, with the reasoning as the first one.
fn thinking_part(mut message: Json) -> Json {
    if message["role"] != "system" && message["role"] != "assistant" {
        return message;
    }
    let Json::Object(fields) = &mut message else { return message };
    let mut parts = Vec::new();
    if let Some(reasoning) = fields.shift_remove("reasoning_content") {
        parts.push(json!({"type": "thinking", "thinking": reasoning}));
    }
    match fields.get("content") {
        Some(Json::String(text)) => parts.push(json!({"type": "text", "text": text})),
        Some(Json::Array(content)) => parts.extend(content.iter().cloned()),
        _ => {}
    }
    fields.insert("content".into(), parts.into());
    message
}

/// Reasoning as the field `thinking`; calls of tools with reasoning have no content if `alone`.
fn thinking_field(mut message: Json, alone: bool) -> Json {
    let Json::Object(fields) = &mut message else { return message };
    if let Some(reasoning) = fields.get("reasoning_content").cloned() {
        fields.insert("thinking".into(), reasoning);
        if alone && fields.contains_key("tool_calls") {
            fields.shift_remove("content");
        }
    }
    message
}

/// Results of tools in the order of their calls, within each run of messages of users and tools.
fn sorted_results(mut messages: Vec<Json>) -> Vec<Json> {
    let mut order: HashMap<String, usize> = HashMap::new();
    let mut at = 0;
    while at < messages.len() {
        let role = messages[at]["role"].as_str().unwrap_or_default();
        if role == "assistant"
            && let Some(calls) = messages[at].get("tool_calls").and_then(Json::as_array)
        {
            let ids = calls.iter().enumerate();
            let ids =
                ids.filter_map(|(place, call)| Some((call["id"].as_str()?.to_owned(), place)));
            order = ids.collect();
        }
        if role != "user" && role != "tool" {
            at += 1;
            continue;
        }
        let run =
            messages[at..].iter().take_while(|it| it["role"] == "user" || it["role"] == "tool");
        let end = at + run.count();
        let places: Vec<_> = (at..end).filter(|place| messages[*place]["role"] == "tool").collect();
        if places.len() > 1 && !order.is_empty() {
            let mut results: Vec<_> = places.iter().map(|place| messages[*place].clone()).collect();
            results.sort_by_key(|result| {
                let id = result.get("tool_call_id").and_then(Json::as_str);
                id.and_then(|id| order.get(id)).copied().unwrap_or(0)
            });
            for (place, result) in places.into_iter().zip(results) {
                messages[place] = result;
            }
        }
        at = end;
    }
    messages
}

/// Calls with their results and the answer after them as one message.
fn tool_responses(messages: &[Json]) -> Vec<Json> {
    let mut out = Vec::new();
    let mut rest = messages;
    while let [first, after @ ..] = rest {
        rest = after;
        let calls = first.get("tool_calls").filter(|_| first["role"] == "assistant");
        let Some(calls) = calls.and_then(Json::as_array) else {
            out.push(first.clone());
            continue;
        };
        let mut responses = Vec::new();
        while let [result, after @ ..] = rest {
            if result["role"] != "tool" {
                break;
            }
            rest = after;
            let call = calls.get(responses.len());
            let name = call.and_then(|call| call["function"]["name"].as_str());
            let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
                result.get("tool_call_id").and_then(Json::as_str).unwrap_or_default()
            });
            let content = &result["content"];
            let value = content.as_str().and_then(|text| serde_json::from_str(text).ok());
            let value: Json = value.unwrap_or_else(|| content.clone());
            responses.push(json!({"name": name, "response": value}));
        }
        let mut message = json!({"role": "assistant", "tool_calls": calls});
        if !responses.is_empty() {
            message["tool_responses"] = responses.into();
        }
        if let [answer, after @ ..] = rest {
            let content = &answer["content"];
            let has_content = content.as_str().is_some_and(|text| !text.is_empty())
                || content.as_array().is_some_and(|parts| !parts.is_empty());
            if answer["role"] == "assistant" && answer.get("tool_calls").is_none() && has_content {
                message["content"] = content.clone();
                rest = after;
            }
        }
        if let Some(reasoning) = first.get("reasoning_content") {
            message["reasoning_content"] = reasoning.clone();
        }
        out.push(message);
    }
    out
}
