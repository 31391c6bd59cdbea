//! `gguf chat-template`: prints and renders chat templates.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::Metadata;
use gguf_kit::open;
use gguf_tokenizer::template::{self, Context};
use serde_json::{Map, Value as Json, json};

use crate::commands::render_template;
use crate::failure::Failure;
use crate::{document, terminal};

/// Key of the default template; the keys of others append a name.
const KEY: &str = template::TemplateSource::KEY;

/// Print the chat template of a model, or render a conversation.
#[derive(clap::Args)]
#[command(
    after_help = "A template is untrusted code. It is rendered in a separate process with limits: 256 MB of memory (on Linux), 2 s of CPU time and 5 s of wall-clock time.\n\nExamples:\n  gguf chat-template model.gguf\n  \
                        gguf chat-template model.gguf --messages conversation.json\n  \
                        gguf chat-template model.gguf --name tool_use --messages conversation.json \
                        --tools tools.json --set enable_thinking=false\n  \
                        gguf chat-template model.gguf --messages conversation.json --engine llama.cpp"
)]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    /// Name of the template [default: the default template].
    #[arg(long, value_name = "VARIANT")]
    name: Option<String>,
    /// Render this conversation: a JSON list of objects with `role` and `content`, or an object with the list
    /// as `messages` and other template variables; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Engine that renders the conversation: jinja2 as `transformers` uses it, or that of llama.cpp, with what it
    /// does to the conversation before.
    #[arg(long, value_enum, default_value_t, requires = "messages")]
    engine: Engine,
    /// Tools available to the model: a JSON list of schemas.
    #[arg(long, value_name = "FILE", requires = "messages")]
    tools: Option<PathBuf>,
    /// Do not append the generation prompt.
    #[arg(long, requires = "messages")]
    no_generation_prompt: bool,
    /// Set a template variable to a JSON value or a string.
    #[arg(long, value_name = "NAME=VALUE", requires = "messages")]
    set: Vec<String>,
    /// Print the template, and the rendered conversation, as JSON.
    #[arg(long)]
    json: bool,
}

/// Engines by their names on the command line.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Engine {
    #[default]
    Transformers,
    #[value(name = "llama.cpp")]
    LlamaCpp,
}

impl From<Engine> for template::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Transformers => Self::Transformers,
            Engine::LlamaCpp => Self::LlamaCpp,
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    let model = opened.model();
    let metadata = model.metadata();
    let name = args.name.as_deref();
    let missing = || {
        let what = name.map_or("chat template".to_owned(), |name| format!("template `{name}`"));
        let names = match variants(metadata) {
            names if names.is_empty() => String::new(),
            names => format!("; it has {}", names.join(", ")),
        };
        Failure::Input(format!("{} has no {what}{names}", args.source))
    };
    let mut out = std::io::stdout().lock();
    let render = |messages: &Path| -> Result<String, Failure> {
        let template =
            template::TemplateSource::from_metadata(metadata, name)?.ok_or_else(missing)?;
        let template = template.with_engine(args.engine.into(), metadata);
        Ok(render_template::renderer()?.render(&template, &context(args, messages)?)?)
    };
    let prompt = args.messages.as_deref().map(render).transpose()?;
    if let Some(prompt) = prompt.as_ref().filter(|_| !args.json) {
        out.write_all(terminal::printable(prompt).as_bytes())?;
        return Ok(out.flush()?);
    }
    let key = name.map_or(KEY.to_owned(), |name| format!("{KEY}.{name}"));
    let text = metadata.get(&key).ok_or_else(missing)?;
    let text = text.as_str().ok_or(template::Error::NotText(key))?;
    if args.json {
        let names = variants(metadata);
        let json = json!({ "name": name, "template": text, "names": names, "prompt": prompt });
        return Ok(document::print(&mut out, "chat-template/1", json)?);
    }
    out.write_all(terminal::printable(text).as_bytes())?;
    out.flush()?;
    let others = variants(metadata);
    if name.is_none() && !others.is_empty() {
        terminal::note(format!("other templates (--name): {}", others.join(", ")));
    }
    Ok(())
}

/// Returns the names of templates other than the default.
fn variants(metadata: &Metadata) -> Vec<&str> {
    metadata.iter().filter_map(|(key, _)| key.strip_prefix(KEY)?.strip_prefix('.')).collect()
}

fn context(args: &Args, messages: &Path) -> Result<Context, Failure> {
    let mut variables = match read(messages)? {
        Json::Object(variables) => variables,
        messages => Map::from_iter([("messages".to_owned(), messages)]),
    };
    if !variables.get("messages").is_some_and(Json::is_array) {
        let fault = "is neither a list of messages nor an object with a list `messages`";
        return Err(Failure::Input(format!("{} {fault}", messages.display())));
    }
    if let Some(tools) = &args.tools {
        variables.insert("tools".into(), read(tools)?);
    }
    for setting in &args.set {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("`{setting}` has no `=`; expected --set NAME=VALUE"))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        variables.insert(name.into(), value);
    }
    if args.no_generation_prompt {
        variables.insert("add_generation_prompt".into(), false.into());
    }
    // Variables override the library's defaults, so these can stay.
    Ok(Context { variables, ..Context::new(Json::Null) })
}

fn read(path: &Path) -> Result<Json, Failure> {
    let text = gguf_kit::read_text(path)?;
    serde_json::from_str(&text).map_err(|fault| {
        let fault = gguf_kit::json::fault(&fault);
        Failure::Input(format!("{} is not valid JSON: {fault}", path.display()))
    })
}
