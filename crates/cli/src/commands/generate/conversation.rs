//! Conversations: messages, and the chat template that makes a prompt of them.

use std::path::Path;

use gguf::Metadata;
use gguf_tokenizer::template::{Context as Variables, TemplateSource};
use gguf_tokenizer::{EncodeOptions, Tokenizer};
use serde_json::{Value as Json, json};

use super::TemplateArgs;
use crate::commands::render_template;
use crate::failure::Failure;

/// Templates of common formats, by name.
const COMMON: [(&str, &str); 8] = [
    ("chatml", include_str!("templates/chatml.jinja")),
    ("gemma", include_str!("templates/gemma.jinja")),
    ("llama2", include_str!("templates/llama2.jinja")),
    ("llama3", include_str!("templates/llama3.jinja")),
    ("mistral", include_str!("templates/mistral.jinja")),
    ("phi3", include_str!("templates/phi3.jinja")),
    ("vicuna", include_str!("templates/vicuna.jinja")),
    ("zephyr", include_str!("templates/zephyr.jinja")),
];

/// Returns a message.
pub fn message(role: &str, text: &str) -> Json {
    json!({"role": role, "content": text})
}

/// Returns the chosen template, else that of the model; `None` if the model has none.
pub fn template(
    metadata: &Metadata,
    chosen: Option<&str>,
) -> Result<Option<TemplateSource>, Failure> {
    let Some(chosen) = chosen else { return Ok(TemplateSource::from_metadata(metadata, None)?) };
    let common = COMMON.iter().find(|(name, _)| *name == chosen).map(|(_, text)| *text);
    let text = match common {
        Some(text) => text.trim_end().to_owned(),
        None => {
            if let Some(variant) = TemplateSource::from_metadata(metadata, Some(chosen))? {
                return Ok(Some(variant));
            }
            if !Path::new(chosen).exists() {
                let names = COMMON.map(|(name, _)| name).join(", ");
                return Err(Failure::Usage(format!(
                    "there is no chat template `{chosen}`: give a file, or one of {names}"
                )));
            }
            gguf_kit::read_text(Path::new(chosen))?
        }
    };
    let mut metadata = metadata.clone();
    metadata.set(TemplateSource::KEY, text);
    Ok(TemplateSource::from_metadata(&metadata, None)?)
}

/// Returns the system prompt and the messages of a JSON file, if there are any.
pub fn begin(args: &TemplateArgs, file: Option<&Path>) -> Result<Vec<Json>, Failure> {
    let mut messages: Vec<Json> = args.system.iter().map(|text| message("system", text)).collect();
    if let Some(file) = file {
        messages.extend(read(file)?);
    }
    Ok(messages)
}

/// Reads messages from a JSON file.
fn read(file: &Path) -> Result<Vec<Json>, Failure> {
    let text = gguf_kit::read_text(file)?;
    let json: Json = serde_json::from_str(&text).map_err(|fault| {
        let fault = gguf_kit::json::fault(&fault);
        Failure::Input(format!("{} is not valid JSON: {fault}", file.display()))
    })?;
    let messages = match json {
        Json::Object(mut variables) => variables.remove("messages").unwrap_or_default(),
        messages => messages,
    };
    match messages {
        Json::Array(messages) => Ok(messages),
        _ => {
            let fault = "is neither a list of messages nor an object with a list `messages`";
            Err(Failure::Input(format!("{} {fault}", file.display())))
        }
    }
}

/// Returns the tokens of a conversation. Texts of users become no control tokens.
pub fn encode(
    tokenizer: &Tokenizer,
    template: &TemplateSource,
    messages: &[Json],
) -> Result<Vec<u32>, Failure> {
    let protected = |message: &Json| {
        let mut message = message.clone();
        if message["role"] == "user"
            && let Some(text) = message["content"].as_str()
        {
            message["content"] = tokenizer.protect(text).into();
        }
        message
    };
    let variables = Variables::new(messages.iter().map(protected).collect());
    let text = render_template::renderer()?.render(template, &variables)?;
    // The template itself writes BOS and EOS.
    let options = EncodeOptions { add_special: false, parse_special: true };
    Ok(tokenizer.encode_protected(&text, options))
}
