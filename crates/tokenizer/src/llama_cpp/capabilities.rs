//! Capabilities of a template, as llama.cpp finds them out: it renders sample conversations and records which values
//! the template uses (`common/jinja/caps.cpp`).

use std::time::SystemTime;

use serde_json::{Map, Value as Json, json};

use super::interpreter::{render, scope};
use super::machine::{Machine, Usage};
use super::syntax::tree::Body;
use super::value::Value;
use crate::jinja::{Error, ErrorKind};

/// Capabilities of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether content is rendered if it is a string.
    pub string_content: bool,
    /// Whether the template reads content as a list of parts.
    pub typed_content: bool,
    pub system_role: bool,
    pub tools: bool,
    pub tool_calls: bool,
    /// Whether it reads arguments of calls as an object.
    pub object_arguments: bool,
}

/// Limits and time of the analysis, and of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps of all samples together, and of all renderings of a conversation.
    pub steps: u64,
    pub text_len: usize,
    pub now: SystemTime,
}

/// Maximum number of samples.
const SAMPLES: u64 = 5;

/// A template after it rendered a sample.
struct Sample {
    text: Option<String>,
    messages: Value,
    tools: Value,
    usage: Usage,
}

impl Sample {
    fn render(body: &Body, messages: Json, tools: Json, options: Options) -> Result<Self, Error> {
        let variables = Map::from_iter([
            ("bos_token".to_owned(), "".into()),
            ("eos_token".to_owned(), "".into()),
            ("add_generation_prompt".to_owned(), true.into()),
        ]);
        let scope = scope(&variables);
        let (messages, tools) = (Value::from(&messages), Value::from(&tools));
        scope.set("messages", messages.clone());
        scope.set("tools", tools.clone());
        let machine = Machine::new(options.steps / SAMPLES, options.now, Some(Usage::default()));
        let text = match render(body, &scope, &machine, options.text_len) {
            Ok(text) => Some(text.lossy()),
            Err(error) if matches!(error.kind, ErrorKind::OutOfSteps | ErrorKind::OutputFull) => {
                return Err(error);
            }
            // A template may refuse a sample.
            Err(_) => None,
        };
        Ok(Self { text, messages, tools, usage: machine.usage.unwrap_or_default() })
    }

    fn is_used(&self, value: Option<Value>) -> bool {
        value.is_some_and(|value| self.usage.is_used(&value))
    }

    fn has(&self, value: &Option<Value>, operation: &str) -> bool {
        value.as_ref().is_some_and(|value| self.usage.has(value, operation))
    }

    fn reads_parts(&self, content: &Option<Value>) -> bool {
        self.has(content, "selectattr") || self.has(content, "array_access")
    }
}

/// A step of a path: a key or a place.
enum Step {
    Key(&'static str),
    At(usize),
}

/// Follows a path from a value.
fn follow(value: &Value, path: &[Step]) -> Option<Value> {
    path.iter().try_fold(value.clone(), |value, step| match (&value, step) {
        (Value::Dict(dict), Step::Key(key)) => dict.of_name(key),
        (Value::List(list), Step::At(at)) => list.items.borrow().get(*at).cloned(),
        _ => None,
    })
}

impl Capabilities {
    /// Finds the capabilities of a template.
    ///
    /// # Errors
    /// If a sample exceeds a limit.
    pub fn of(body: &Body, options: Options) -> Result<Self, Error> {
        use Step::{At, Key};
        const CONTENT: [Step; 2] = [At(0), Key("content")];
        const MARKER: &str = "STRING_MARKER";
        let mut found = Self {
            string_content: true,
            typed_content: false,
            system_role: true,
            tools: true,
            tool_calls: true,
            object_arguments: false,
        };
        let none = || Json::Array(Vec::new());
        let user = |content: Json| json!([{"role": "user", "content": content}]);

        let sample = Sample::render(body, user(MARKER.into()), none(), options)?;
        let content = follow(&sample.messages, &CONTENT);
        let reads_parts = sample.reads_parts(&content);
        found.typed_content = reads_parts;
        found.string_content = match &sample.text {
            None => false,
            Some(text) => !reads_parts || text.contains(MARKER),
        };
        if sample.has(&content, "test_is_string") {
            let sample = Sample::render(body, user(none()), none(), options)?;
            let content = follow(&sample.messages, &CONTENT);
            found.typed_content |= sample.text.is_some() && sample.reads_parts(&content);
        }

        let messages = json!([
            {"role": "system", "content": "System message"},
            {"role": "user", "content": "User message"},
        ]);
        let sample = Sample::render(body, messages, none(), options)?;
        found.system_role = sample.is_used(follow(&sample.messages, &CONTENT));

        let name = [At(0), Key("function"), Key("name")];
        let calls = [At(1), Key("tool_calls")];
        let argument =
            [At(1), Key("tool_calls"), At(0), Key("function"), Key("arguments"), Key("arg")];
        let sample = Sample::render(body, tool_call(json!({"arg": "value"})), tools(), options)?;
        if sample.text.is_some() {
            found.tools = sample.is_used(follow(&sample.tools, &name));
            found.tool_calls = sample.is_used(follow(&sample.messages, &calls));
            found.object_arguments =
                found.tool_calls && sample.is_used(follow(&sample.messages, &argument));
        }
        if !found.object_arguments {
            let text = json!("{\"arg\": \"value\"}");
            let sample = Sample::render(body, tool_call(text), tools(), options)?;
            let is_rendered = sample.text.is_some();
            found.tools &= is_rendered && sample.is_used(follow(&sample.tools, &name));
            found.tool_calls &= is_rendered && sample.is_used(follow(&sample.messages, &calls));
        }
        Ok(found)
    }
}

fn tool_call(arguments: Json) -> Json {
    json!([
        {"role": "user", "content": "User message"},
        {"role": "assistant", "content": "", "tool_calls": [{
            "id": "call00001",
            "type": "function",
            "function": {"name": "tool1", "arguments": arguments},
        }]},
        {"role": "tool", "content": "Tool response", "tool_call_id": "call00001"},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        {"role": "user", "content": "User message"},
    ])
}

fn tools() -> Json {
    json!([{
        "name": "tool",
        "type": "function",
        "function": {
            "name": "tool1",
            "description": "Tool description",
            "parameters": {
                "type": "object",
                "properties": {"arg": {"type": "string", "description": "Arg description"}},
                "required": ["arg"],
            },
        },
    }])
}
