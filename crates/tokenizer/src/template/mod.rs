//! Chat templates: how a conversation becomes the text that a model was trained on.
//!
//! A template is a Jinja program inside the model file. `transformers` runs it with jinja2, and
//! models are published with what comes out there, so the environment here is made to behave as
//! that one: see `apply_chat_template` and `_compile_jinja_template` in transformers.
//!
//! The program is untrusted. It can reach nothing but the values it is given, and what it takes is
//! limited ([`Limits`]): steps and text by the engine, memory and time by the system, for which it
//! must run in a process of its own ([`Renderer::process`]).

mod bounds;
mod environment;
mod error;
mod generation;
mod json;
mod limits;
mod lint;
mod process;
mod renderer;
mod source;
mod time;

use std::time::SystemTime;

use bounds::{STACK, Text, on_own_stack};
pub use error::Error;
use gguf::Metadata;
pub use limits::Limits;
pub use lint::Linter;
use minijinja::Environment;
use minijinja::value::Serde;
pub use renderer::Renderer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
pub use source::Source;

/// What a template makes text of.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// The name of the template in its environment.
const NAME: &str = "chat_template";

/// A chat template that was read without fault, to render in this process any number of
/// conversations: see [`Renderer::here`] for what that means.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    tokens: Map<String, Json>,
    limits: Limits,
}

impl Template {
    /// The template of a model file: the one called `name`, or the default one; `None` if the file
    /// has no such template.
    ///
    /// # Errors
    /// If the value is no text, or no valid Jinja.
    pub fn from_metadata(metadata: &Metadata, name: Option<&str>) -> Result<Option<Self>, Error> {
        Source::from_metadata(metadata, name)?.map(|source| Self::from_source(&source)).transpose()
    }

    /// A template of this Jinja text, without special tokens.
    ///
    /// # Errors
    /// If it is no valid Jinja, or too long.
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::from_source(&Source::new(text)?)
    }

    fn from_source(source: &Source) -> Result<Self, Error> {
        on_own_stack(STACK, || Self::parse(source, &Limits::default())).map_err(Error::engine)?
    }

    /// The text of a conversation.
    ///
    /// # Errors
    /// If the template refuses the conversation, fails, or meets a limit.
    pub fn render(&self, context: &Context) -> Result<String, Error> {
        on_own_stack(STACK, || self.render_here(context)).map_err(Error::engine)?
    }

    /// Reads a template, on the stack of the caller.
    fn parse(source: &Source, limits: &Limits) -> Result<Self, Error> {
        let mut environment = environment::like_transformers();
        environment.set_fuel(Some(limits.steps));
        environment
            .add_template_owned(NAME, generation::without_tags(&source.text))
            .map_err(|error| Error::syntax(&error))?;
        Ok(Self { environment, tokens: source.tokens.clone(), limits: *limits })
    }

    /// Renders, on the stack of the caller.
    fn render_here(&self, context: &Context) -> Result<String, Error> {
        let mut values = self.tokens.clone();
        values.insert("messages".into(), context.messages.clone());
        values.insert("tools".into(), context.tools.clone());
        values.insert("documents".into(), context.documents.clone());
        values.insert("add_generation_prompt".into(), context.add_generation_prompt.into());
        values.extend(context.variables.clone());
        let mut environment = self.environment.clone();
        let now = context.now;
        environment.add_function("strftime_now", move |format: &str| time::strftime(now, format));

        let limit = self.limits.text_len;
        let mut text = Text { bytes: Vec::new(), limit, is_full: false };
        let done = environment
            .get_template(NAME)
            .and_then(|template| template.render_captured_to(Serde(values), &mut text).map(drop));
        match done {
            // The engine writes nothing but `str`s.
            Ok(()) => String::from_utf8(text.bytes).map_err(|_| Error::engine("no UTF-8")),
            Err(error) if text.is_full => Err(Error::Limit {
                line: error.line().unwrap_or_default(),
                limit: format!("{} of text", limits::megabytes(limit as u64)),
            }),
            Err(error) => Err(Error::rendering(&error, self.limits.steps)),
        }
    }
}
