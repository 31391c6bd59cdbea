//! Chat templates: how a conversation becomes the text that a model was trained on.
//!
//! A template is a Jinja program inside the model file. `transformers` runs it with jinja2, and
//! models are published with what comes out there, so the environment here is made to behave as
//! that one: see `apply_chat_template` and `_compile_jinja_template` in transformers. The program
//! is untrusted: it can reach nothing but the values it is given, and its steps, its depth and
//! the length of its text are limited.

mod environment;
mod generation;
mod json;
mod limits;
mod lint;
mod time;

use std::time::SystemTime;

use gguf::Metadata;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind};
use serde_json::{Map, Value as Json};

use limits::{FUEL, SOURCE_LEN, TEXT_LEN, Text, on_own_stack};
pub use lint::lint;

/// The key of the template that is used unless another one is asked for.
const KEY: &str = "tokenizer.chat_template";
/// The key of the list of names of further templates.
const NAMES: &str = "tokenizer.chat_templates";

/// Variables of a template that hold the text of a special token, with the key of its id.
const TOKENS: [(&str, &str); 7] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    ("sep_token", "tokenizer.ggml.seperator_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
    ("cls_token", "tokenizer.ggml.cls_token_id"),
    ("mask_token", "tokenizer.ggml.mask_token_id"),
];

/// Why a template gives no text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The value of the key is not a text in UTF-8.
    #[error("key `{0}` is no text in UTF-8")]
    NotText(String),
    /// The template is not Jinja.
    #[error("line {line}: {cause}")]
    Syntax {
        /// Line in the template, from 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// The template called `raise_exception`: it does not want this conversation.
    #[error("line {line}: the template refuses the conversation: {message}")]
    Refused {
        /// Line in the template, from 1.
        line: usize,
        /// The template's own words.
        message: String,
    },
    /// The template ran too long or wrote too much.
    #[error("line {line}: the template goes on after {limit}")]
    Limit {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// The limit that it met.
        limit: String,
    },
    /// The template fails with this conversation.
    #[error("line {line}: {cause}")]
    Render {
        /// Line in the template, from 1; 0 if unknown.
        line: usize,
        /// What went wrong there.
        cause: String,
    },
}

/// What a template makes text of.
#[derive(Clone, Debug)]
pub struct Context {
    /// The conversation: a list of objects with `role`, `content` and what else the template knows,
    /// such as `tool_calls` and `reasoning_content`.
    pub messages: Json,
    /// Tools that the model may call: a list of JSON schemas; null without tools.
    pub tools: Json,
    /// Documents to answer from: a list of objects with `title` and `text`; null without documents.
    pub documents: Json,
    /// Whether the text ends with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// Further variables, such as `enable_thinking`; they win over the special tokens.
    pub variables: Map<String, Json>,
    /// The time that `strftime_now` tells, in UTC.
    pub now: SystemTime,
}

impl Context {
    /// A conversation to be answered, without tools and documents, now.
    pub fn new(messages: Json) -> Self {
        Self {
            messages,
            tools: Json::Null,
            documents: Json::Null,
            add_generation_prompt: true,
            variables: Map::new(),
            now: SystemTime::now(),
        }
    }
}

/// A chat template that was read without fault.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    /// Variables that hold special tokens; those that the vocabulary lacks are undefined.
    tokens: Map<String, Json>,
}

/// The name of the template in its environment.
const NAME: &str = "chat_template";

impl Template {
    /// The template of a model file: the one called `name`, or the default one; `None` if the file
    /// has no such template.
    ///
    /// # Errors
    /// If the value is no text, or no valid Jinja.
    pub fn from_metadata(metadata: &Metadata, name: Option<&str>) -> Result<Option<Self>, Error> {
        let key = name.map_or(KEY.to_owned(), |name| format!("{KEY}.{name}"));
        let Some(value) = metadata.get(&key) else { return Ok(None) };
        let text = value.as_str().ok_or(Error::NotText(key))?;
        let mut template = Self::new(text)?;
        template.tokens = special_tokens(metadata);
        Ok(Some(template))
    }

    /// A template of this Jinja text, without special tokens.
    ///
    /// # Errors
    /// If it is no valid Jinja.
    pub fn new(text: &str) -> Result<Self, Error> {
        if text.len() > SOURCE_LEN {
            return Err(Error::Limit { line: 0, limit: format!("{SOURCE_LEN} bytes") });
        }
        let mut environment = environment::like_transformers();
        environment.set_fuel(Some(FUEL));
        let text = generation::without_tags(text);
        on_own_stack(|| environment.add_template_owned(NAME, text))
            .map_err(engine_failure)?
            .map_err(|error| Error::Syntax { line: line(&error), cause: cause(&error) })?;
        Ok(Self { environment, tokens: Map::new() })
    }

    /// Lets a rendering take this many steps.
    fn with_fuel(mut self, fuel: u64) -> Self {
        self.environment.set_fuel(Some(fuel));
        self
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// If the template refuses the conversation, fails, or meets a limit.
    pub fn render(&self, context: &Context) -> Result<String, Error> {
        let mut values = self.tokens.clone();
        values.insert("messages".into(), context.messages.clone());
        values.insert("tools".into(), context.tools.clone());
        values.insert("documents".into(), context.documents.clone());
        values.insert("add_generation_prompt".into(), context.add_generation_prompt.into());
        values.extend(context.variables.clone());
        let mut environment = self.environment.clone();
        let now = context.now;
        environment.add_function("strftime_now", move |format: &str| time::strftime(now, format));

        on_own_stack(|| {
            let mut text = Text::default();
            environment
                .get_template(NAME)
                .and_then(|template| {
                    template.render_captured_to(Serde(values), &mut text).map(drop)
                })
                .map_err(|error| failure(&error, &environment, text.is_full))?;
            // The engine writes nothing but `str`s.
            Ok(String::from_utf8_lossy(&text.bytes).into_owned())
        })
        .map_err(engine_failure)?
    }
}

/// The texts of the special tokens that the vocabulary has.
fn special_tokens(metadata: &Metadata) -> Map<String, Json> {
    let Some(tokens) = metadata.array("tokenizer.ggml.tokens") else { return Map::new() };
    let text = |key| {
        let id = usize::try_from(metadata.u64(key)?).ok()?;
        Some(String::from_utf8_lossy(tokens.strings()?.nth(id)?).into_owned())
    };
    TOKENS.iter().filter_map(|(name, key)| Some(((*name).into(), text(key)?.into()))).collect()
}

/// The error of a rendering, by what caused it.
fn failure(error: &minijinja::Error, environment: &Environment, is_full: bool) -> Error {
    // Errors within macros and blocks are wrapped; the innermost one has the cause.
    let mut innermost = error;
    while let Some(source) = std::error::Error::source(innermost) {
        if let Some(refusal) = source.downcast_ref::<environment::Refusal>() {
            return Error::Refused { line: line(innermost), message: refusal.0.clone() };
        }
        let Some(source) = source.downcast_ref() else { break };
        innermost = source;
    }
    let line = line(innermost);
    if is_full {
        return Error::Limit { line, limit: format!("{TEXT_LEN} bytes of text") };
    }
    if innermost.kind() == ErrorKind::OutOfFuel {
        let steps = environment.fuel().unwrap_or_default();
        return Error::Limit { line, limit: format!("{steps} steps") };
    }
    Error::Render { line, cause: cause(innermost) }
}

fn engine_failure(cause: &str) -> Error {
    Error::Render { line: 0, cause: cause.to_owned() }
}

fn line(error: &minijinja::Error) -> usize {
    error.line().unwrap_or_default()
}

/// What an error says, without the place, which has a field of its own.
fn cause(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
