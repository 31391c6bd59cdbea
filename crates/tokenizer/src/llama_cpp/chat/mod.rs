//! Conversations: from the form of the OpenAI API to the prompt (`common/chat.cpp`).

mod families;
mod messages;
mod workarounds;

use std::time::SystemTime;

use families::Family;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::capabilities::{Capabilities, Options};
use super::interpreter::{render, scope};
use super::machine::Machine;
use super::syntax::parse;
use super::syntax::tree::Body;
use crate::jinja::{Error, ErrorKind, strftime};

/// Template of a model without one.
const CHATML: &str = "{%- for message in messages -%}\n  {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n  {{- '<|im_start|>assistant\\n' -}}\n{%- endif -%}";

/// Renderings of a conversation: with and without the generation prompt.
const RENDERINGS: u64 = 2;

/// Special tokens of a model file, and whether its tokenizer adds them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Texts of BOS and EOS; empty without such a token.
    pub bos: String,
    pub eos: String,
    /// Whether the prompt has none at its start and end, because the tokenizer adds them.
    pub adds_bos: bool,
    pub adds_eos: bool,
}

/// A parsed template with its capabilities.
#[derive(Debug)]
pub struct Template {
    source: String,
    body: Body,
    capabilities: Capabilities,
    settings: Settings,
    options: Options,
}

/// A conversation with the variables of a request.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub messages: Json,
    pub tools: Json,
    pub add_generation_prompt: bool,
    pub variables: Map<String, Json>,
    pub now: SystemTime,
}

/// Error in a conversation, at no line of the template.
fn refused<T>(cause: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Failed(cause.into())))
}

impl Template {
    /// Parses a template, and finds its capabilities. An empty one, and one by the name `chatml`, is that of ChatML.
    ///
    /// # Errors
    /// If llama.cpp does not parse it, or a sample exceeds a limit.
    pub fn new(source: &str, settings: Settings, options: Options) -> Result<Self, Error> {
        let source = match source {
            "" | "chatml" => CHATML.to_owned(),
            other => workarounds::patched(other),
        };
        let body = parse(&source)?;
        let capabilities = Capabilities::of(&body, options)?;
        Ok(Self { source, body, capabilities, settings, options })
    }

    /// Renders the prompt of a conversation.
    ///
    /// # Errors
    /// If llama.cpp refuses the conversation, or the template fails or exceeds a limit. It renders each conversation
    /// with and without the generation prompt, and refuses it if one of both fails.
    pub fn render(&self, conversation: &Conversation) -> Result<String, Error> {
        let tools = messages::tools(&conversation.tools)?;
        let family = Family::of(&self.source);
        let messages = messages::read(&conversation.messages)?;
        let messages = workarounds::before(messages, &self.source, &self.capabilities)?;
        let messages = families::before(messages, family);
        let messages = match family.is_some_and(Family::keeps_parts) {
            true => messages,
            false => messages::normalized(messages, &self.capabilities),
        };
        let apply = |generates: bool| self.apply(&messages, &tools, conversation, generates);
        let generates = conversation.add_generation_prompt;
        let prompt = apply(generates)?;
        if family != Some(Family::MuseGlimmer) {
            apply(!generates)?;
        }
        Ok(families::after(prompt, family, generates))
    }

    fn apply(
        &self,
        messages: &[Json],
        tools: &[Json],
        conversation: &Conversation,
        generates: bool,
    ) -> Result<String, Error> {
        let date = |format: &str| Json::from(strftime(conversation.now, format));
        let Settings { bos, eos, adds_bos, adds_eos } = &self.settings;
        let mut variables = Map::from_iter([
            ("bos_token".to_owned(), bos.as_str().into()),
            ("eos_token".to_owned(), eos.as_str().into()),
            ("enable_thinking".to_owned(), true.into()),
            ("datetime".to_owned(), date("%b %d %Y")),
            ("date_string".to_owned(), date("%d %b %Y")),
        ]);
        if let Some(Json::Bool(keeps)) = conversation.variables.get("preserve_reasoning") {
            variables.insert("preserve_thinking".into(), (*keeps).into());
            for name in ["clear_thinking", "truncate_history_thinking", "drop_thinking"] {
                variables.insert(name.into(), (!keeps).into());
            }
        }
        if let Some(effort @ Json::String(_)) = conversation.variables.get("reasoning_effort") {
            variables.insert("reasoning_strength".into(), effort.clone());
        }
        if !tools.is_empty() {
            variables.insert("tools".into(), tools.into());
        }
        variables.insert("messages".into(), messages.into());
        variables.extend(conversation.variables.clone());
        if generates {
            variables.insert("add_generation_prompt".into(), true.into());
        }
        let Options { steps, text_len, .. } = self.options;
        let machine = Machine::new(steps / RENDERINGS, conversation.now, None);
        let prompt = render(&self.body, &scope(&variables), &machine, text_len)?;
        let Ok(prompt) = String::from_utf8(prompt.bytes) else {
            return refused(
                "the prompt is not UTF-8: llama.cpp counts bytes, and the template cuts a character",
            );
        };
        let mut prompt = prompt.as_str();
        if *adds_bos {
            prompt = prompt.strip_prefix(bos.as_str()).unwrap_or(prompt);
        }
        if *adds_eos {
            prompt = prompt.strip_suffix(eos.as_str()).unwrap_or(prompt);
        }
        Ok(prompt.to_owned())
    }
}
