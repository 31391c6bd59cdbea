//! Chat templates: render a conversation as the text that a model was trained on.
//!
//! A template is a Jinja program inside the model file. `transformers` runs it with jinja2, so the
//! environment here behaves as `apply_chat_template` and `_compile_jinja_template` of transformers.
//!
//! The program is untrusted input. It reaches only the values passed to it, and its resources are
//! limited ([`Limits`]): steps and output by the engine, memory and time by the operating system,
//! which requires a separate process ([`Renderer::process`]); in WebAssembly by a separate instance
//! ([`Renderer::instance`]).

mod clock;
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
pub use source::{Engine, TemplateSource};

use crate::{jinja, llama_cpp};

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
            now: clock::now(),
        }
    }

    /// Returns the request to llama.cpp: variables override the fields, as for jinja2.
    fn conversation(&self) -> llama_cpp::Conversation {
        let mut variables = self.variables.clone();
        let mut field = |name: &str, value: &Json| {
            variables.shift_remove(name).unwrap_or_else(|| value.clone())
        };
        let messages = field("messages", &self.messages);
        let tools = field("tools", &self.tools);
        let generates = field("add_generation_prompt", &self.add_generation_prompt.into());
        llama_cpp::Conversation {
            messages,
            tools,
            add_generation_prompt: generates.as_bool() == Some(true),
            variables,
            now: self.now,
        }
    }
}

/// A parsed chat template, for rendering in this process any number of times: see
/// [`Renderer::in_process`] for the risks.
#[derive(Debug)]
pub struct Template {
    program: Program,
    limits: Limits,
}

/// A parsed template by its engine.
#[derive(Debug)]
enum Program {
    Transformers {
        tree: jinja::Tree,
        tokens: Map<String, Json>,
    },
    /// The template, and the one for conversations with tools.
    LlamaCpp {
        default: Box<llama_cpp::Template>,
        tool_use: Option<Box<llama_cpp::Template>>,
    },
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
        let fault = |error| Error::from_engine(error, limits);
        let Some(settings) = &source.llama_cpp else {
            let tree = jinja::parse(&source.text).map_err(fault)?;
            let program = Program::Transformers { tree, tokens: source.tokens.clone() };
            return Ok(Self { program, limits: *limits });
        };
        let Limits { steps, text_len, .. } = *limits;
        // Each conversation has its own time.
        let options = llama_cpp::Options { steps, text_len, now: SystemTime::UNIX_EPOCH };
        let read = |text| llama_cpp::Template::new(text, settings.settings.clone(), options);
        let default = read(&source.text).map_err(fault)?;
        // llama.cpp ignores a template for tools that it cannot parse.
        let tool_use = settings.tool_use.as_deref().and_then(|text| read(text).ok());
        let program =
            Program::LlamaCpp { default: default.into(), tool_use: tool_use.map(Box::new) };
        Ok(Self { program, limits: *limits })
    }

    /// Renders on the caller's stack.
    fn render_on_stack(&self, context: &Context) -> Result<String, Error> {
        let rendered = match &self.program {
            Program::Transformers { tree, tokens } => {
                let mut values = tokens.clone();
                values.insert("messages".into(), context.messages.clone());
                values.insert("tools".into(), context.tools.clone());
                values.insert("documents".into(), context.documents.clone());
                values.insert("add_generation_prompt".into(), context.add_generation_prompt.into());
                values.extend(context.variables.clone());
                let Limits { steps, text_len, .. } = self.limits;
                jinja::render(tree, &values, jinja::Options { steps, text_len, now: context.now })
            }
            Program::LlamaCpp { default, tool_use } => {
                let conversation = context.conversation();
                let has_tools = conversation.tools.as_array().is_some_and(|it| !it.is_empty());
                tool_use.as_ref().filter(|_| has_tools).unwrap_or(default).render(&conversation)
            }
        };
        rendered.map_err(|error| Error::from_engine(error, &self.limits))
    }
}
