//! Chat templates, which are programs of whoever made the model: they run in a process of its own.

use gguf_tokenizer::template::{Context, Error, Source};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::Question;
use super::tokens::yes;
use crate::answer::{Answer, Answered, Failure, cut};

/// Characters of a template that are shown.
const SHOWN: usize = 256 << 10;

/// `GET templates`.
pub fn templates(question: &Question) -> Answered {
    let keys = question.model.model()?.metadata().iter().enumerate();
    let template = |(n, (key, value)): (usize, (&str, &gguf::Value))| {
        let rest = key.strip_prefix(Source::KEY)?;
        let name = match rest.strip_prefix('.') {
            Some(name) => Some(name),
            None if rest.is_empty() => None,
            None => return None,
        };
        let text = value.as_bytes()?;
        Some(json!({
            "name": name, "key_n": n, "text": cut(text, SHOWN), "text_bytes": text.len(),
        }))
    };
    Ok(Answer::Json(json!({ "templates": keys.filter_map(template).collect::<Json>() })))
}

/// What `POST template` is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    source: Option<String>,
    messages: Json,
    #[serde(default)]
    tools: Json,
    #[serde(default)]
    variables: Map<String, Json>,
    #[serde(default = "yes")]
    add_generation_prompt: bool,
}

/// `POST template`.
pub fn template(question: Question, sent: Conversation) -> Answered {
    let metadata = question.model.model()?.metadata();
    if !sent.messages.is_array() {
        return Err(Failure::request("`messages` is a list"));
    }
    let source = match &sent.source {
        // With the special tokens of the model.
        Some(text) => {
            let mut metadata = metadata.clone();
            metadata.set(Source::KEY, text.as_str());
            Source::from_metadata(&metadata, None)
        }
        None => Source::from_metadata(metadata, sent.name.as_deref()),
    };
    let source = source.map_err(|fault| failure(&fault))?.ok_or_else(|| {
        let what = "the model has no such chat template";
        Failure::from(gguf_kit::Error::request("name-not-found", what, ""))
    })?;
    let context = Context {
        tools: sent.tools,
        variables: sent.variables,
        add_generation_prompt: sent.add_generation_prompt,
        ..Context::new(sent.messages)
    };
    let text = question.session.renderer.render(&source, &context);
    Ok(Answer::Json(json!({ "text": text.map_err(|fault| failure(&fault))? })))
}

/// The failure of a template, with the line where it fails.
fn failure(fault: &Error) -> Failure {
    let line = match fault {
        Error::Syntax { line, .. }
        | Error::Refused { line, .. }
        | Error::Limit { line, .. }
        | Error::Render { line, .. } => Some(*line).filter(|line| *line > 0),
        _ => None,
    };
    let mut failure = Failure::from(gguf_kit::Error::from(fault.clone()));
    failure.error["line"] = line.into();
    failure
}
