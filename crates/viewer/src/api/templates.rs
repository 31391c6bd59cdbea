//! Chat templates. They are untrusted code and are rendered in a sandboxed process.

use gguf_tokenizer::template::{Context, Error, TemplateSource};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::Request;
use super::tokens::default_true;
use crate::response::{ApiError, ApiResult, Response, truncated};

/// Maximum number of characters of a template in a response.
const MAX_CHARS: usize = 256 << 10;

/// `GET templates`.
pub fn templates(request: &Request) -> ApiResult {
    let keys = request.model.model()?.metadata().iter().enumerate();
    let template = |(n, (key, value)): (usize, (&str, &gguf::Value))| {
        let rest = key.strip_prefix(TemplateSource::KEY)?;
        let name = match rest.strip_prefix('.') {
            Some(name) => Some(name),
            None if rest.is_empty() => None,
            None => return None,
        };
        let text = value.as_bytes()?;
        Some(json!({
            "name": name, "key_n": n, "text": truncated(text, MAX_CHARS), "text_bytes": text.len(),
        }))
    };
    Ok(Response::Json(json!({ "templates": keys.filter_map(template).collect::<Json>() })))
}

/// Body of `POST template`.
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
    #[serde(default = "default_true")]
    add_generation_prompt: bool,
}

/// `POST template`.
pub fn template(request: Request, conversation: Conversation) -> ApiResult {
    let metadata = request.model.model()?.metadata();
    if !conversation.messages.is_array() {
        return Err(ApiError::bad_request("expected an array as `messages`"));
    }
    let source = match &conversation.source {
        // The template uses the special tokens of the model.
        Some(text) => {
            let mut metadata = metadata.clone();
            metadata.set(TemplateSource::KEY, text.as_str());
            TemplateSource::from_metadata(&metadata, None)
        }
        None => TemplateSource::from_metadata(metadata, conversation.name.as_deref()),
    };
    let source = source.map_err(|error| template_error(&error))?.ok_or_else(|| {
        let message = "the model has no such chat template";
        ApiError::from(gguf_kit::Error::request("name-not-found", message, ""))
    })?;
    let context = Context {
        tools: conversation.tools,
        variables: conversation.variables,
        add_generation_prompt: conversation.add_generation_prompt,
        ..Context::new(conversation.messages)
    };
    let text = request.session.renderer.render(&source, &context);
    Ok(Response::Json(json!({ "text": text.map_err(|error| template_error(&error))? })))
}

/// Returns the error of a template with its line.
fn template_error(error: &Error) -> ApiError {
    let line = match error {
        Error::Syntax { line, .. }
        | Error::Refused { line, .. }
        | Error::Limit { line, .. }
        | Error::Render { line, .. } => Some(*line).filter(|line| *line > 0),
        _ => None,
    };
    let mut api_error = ApiError::from(gguf_kit::Error::from(error.clone()));
    api_error.error["line"] = line.into();
    api_error
}
