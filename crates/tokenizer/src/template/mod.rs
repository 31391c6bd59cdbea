//! Chat templates: render a conversation as the text that a model was trained on.
//!
//! A template is a Jinja program inside the model file. `transformers` runs it with jinja2, so the
//! environment here behaves as `apply_chat_template` and `_compile_jinja_template` of transformers.
//!
//! The program is untrusted input. It reaches only the values passed to it, and its resources are
//! limited ([`Limits`]): steps and output by the engine, memory and time by the operating system,
//! which requires a separate process ([`Renderer::process`]).

mod error;
mod limits;
mod lint;
mod process;
mod renderer;
mod sandbox;
mod source;

use std::time::SystemTime;

pub use error::Error;
use gguf::Metadata;
pub use limits::Limits;
pub use lint::Linter;
pub use renderer::Renderer;
use sandbox::{STACK, on_separate_stack};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
pub use source::TemplateSource;

use crate::jinja;

/// Input of a template.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Context {
    /// Conversation: a list of objects with `role`, `content` and other fields that the template
    /// knows, such as `tool_calls` and `reasoning_content`.
    pub messages: Json,
    /// Tools for tool calling: a list of JSON schemas; null without tools.
    pub tools: Json,
    /// Documents for retrieval: a list of objects with `title` and `text`; null without documents.
    pub documents: Json,
    /// Whether the text ends with the beginning of an assistant message.
    pub add_generation_prompt: bool,
    /// Further variables, such as `enable_thinking`; they override the special tokens.
    pub variables: Map<String, Json>,
    /// Time that `strftime_now` formats, in UTC.
    pub now: SystemTime,
}

impl Context {
    /// Creates the input for a conversation without tools and documents, with the present time.
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

/// A parsed chat template, for rendering in this process any number of times: see
/// [`Renderer::in_process`] for the risks.
#[derive(Debug)]
pub struct Template {
    tree: jinja::Tree,
    tokens: Map<String, Json>,
    limits: Limits,
}

impl Template {
    /// Reads the template of a model file with this name, or the default one; `None` if the file
    /// has no such template.
    ///
    /// # Errors
    /// If the value is not a string, or not valid Jinja.
    pub fn from_metadata(metadata: &Metadata, name: Option<&str>) -> Result<Option<Self>, Error> {
        TemplateSource::from_metadata(metadata, name)?
            .map(|source| Self::from_source(&source))
            .transpose()
    }

    /// Parses a template without special tokens.
    ///
    /// # Errors
    /// If it is not valid Jinja, or too long.
    pub fn new(text: &str) -> Result<Self, Error> {
        Self::from_source(&TemplateSource::new(text)?)
    }

    fn from_source(source: &TemplateSource) -> Result<Self, Error> {
        on_separate_stack(STACK, || Self::parse(source, &Limits::default()))
            .map_err(Error::engine)?
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// If the template rejects the conversation, fails, or exceeds a limit.
    pub fn render(&self, context: &Context) -> Result<String, Error> {
        on_separate_stack(STACK, || self.render_on_stack(context)).map_err(Error::engine)?
    }

    /// Parses a template on the caller's stack.
    fn parse(source: &TemplateSource, limits: &Limits) -> Result<Self, Error> {
        let tree = jinja::parse(&source.text).map_err(|error| Error::from_engine(error, limits))?;
        Ok(Self { tree, tokens: source.tokens.clone(), limits: *limits })
    }

    /// Renders on the caller's stack.
    fn render_on_stack(&self, context: &Context) -> Result<String, Error> {
        let mut values = self.tokens.clone();
        values.insert("messages".into(), context.messages.clone());
        values.insert("tools".into(), context.tools.clone());
        values.insert("documents".into(), context.documents.clone());
        values.insert("add_generation_prompt".into(), context.add_generation_prompt.into());
        values.extend(context.variables.clone());
        let Limits { steps, text_len, .. } = self.limits;
        let options = jinja::Options { steps, text_len, now: context.now };
        jinja::render(&self.tree, &values, options)
            .map_err(|error| Error::from_engine(error, &self.limits))
    }
}
