//! `gguf export --to ollama`: adds a model to the store of Ollama.

use std::path::PathBuf;

use gguf::Metadata;
use gguf_kit::Opened;
use gguf_remote::{OllamaLayer, OllamaName, OllamaStore};
use gguf_store::{Model, ShardSet};
use gguf_tokenizer::template::{Context, TemplateSource};
use serde_json::{Map, Value as Json, json};

use crate::commands::{print_written, render_template};
use crate::downloads;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{listing, terminal};

/// A chat format with its template in Ollama's language (Go's text/template).
struct Format {
    name: &'static str,
    /// The prompt for [`conversation`] by a chat template of this format, after the BOS token.
    rendered: &'static str,
    template: &'static str,
    /// Stop sequences.
    stop: &'static [&'static str],
}

/// Formats whose templates in Ollama's language render the same texts.
const FORMATS: &[Format] = &[
    Format {
        name: "ChatML",
        rendered: "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n\
                   <|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n",
        template: "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n",
        stop: &["<|im_start|>", "<|im_end|>"],
    },
    Format {
        name: "Llama 3",
        rendered: "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n\
                   U<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|>\
                   <|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|>\
                   <|start_header_id|>assistant<|end_header_id|>\n\n",
        template: "{{ range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>\n\n{{ .Content }}<|eot_id|>{{ end }}\
                   <|start_header_id|>assistant<|end_header_id|>\n\n",
        stop: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    },
];

/// Adds the model that `source` names under `name`, or under a name from its metadata.
pub fn export(
    source: &str,
    opened: &Opened,
    name: Option<&str>,
    replace: bool,
    as_json: bool,
) -> Result<(), Failure> {
    let metadata = opened.model().metadata();
    let path = PathBuf::from(downloads::local(source)?);
    let file = ShardSet::single_file(&path, "Ollama stores one file")?;
    let name = name.map_or_else(|| default_name(metadata, &file), str::to_owned);
    let name = name.strip_prefix("ollama:").unwrap_or(&name);
    let name = OllamaName::parse(name)
        .map_err(|form| Failure::Usage(format!("{name} is not a name in Ollama: {form}")))?;
    let mut layers = Vec::new();
    match format(metadata)? {
        Some(format) => {
            let params = json!({ "stop": format.stop }).to_string();
            layers.push(OllamaLayer { kind: "template", bytes: format.template.into() });
            layers.push(OllamaLayer { kind: "params", bytes: params.into() });
            terminal::note(format!("the chat format is {}", format.name));
        }
        None if metadata.get(TemplateSource::KEY).is_some() => terminal::note(
            "the chat template has no known equivalent in Ollama: no template is stored, and Ollama completes prompts \
             unless it knows the model; `ollama create` with a TEMPLATE adds one",
        ),
        None => {}
    }
    let progress = Progress::new();
    let store = OllamaStore::from_env();
    store.add(&name, &file, &layers, config(opened.model()), replace, &progress)?;
    let time = progress.finish();
    let bytes = file.metadata().map_or(0, |status| status.len());
    let shown = format!("ollama:{name}");
    if as_json {
        return print_written("export/2", [(shown.as_ref(), bytes)], time);
    }
    let (size, time) = (listing::bytes(bytes), time.as_secs_f64());
    eprintln!("added {shown}: {size} in {time:.1} s; `ollama run {name}` runs it");
    Ok(())
}

/// Returns the name of the model in lower case; the tag is its type.
fn default_name(metadata: &Metadata, file: &std::path::Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = metadata.str("general.name").unwrap_or(&stem).to_lowercase();
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']);
    match file_type(metadata) {
        Some(tag) => format!("{name}:{}", tag.to_lowercase()),
        None => name.to_owned(),
    }
}

fn file_type(metadata: &Metadata) -> Option<&'static str> {
    Some(gguf::file_type(metadata.u64("general.file_type")?)?.name)
}

/// Returns the description that `ollama list` and `ollama show` print.
fn config(model: &Model) -> Map<String, Json> {
    let metadata = model.metadata();
    let architecture = metadata.str("general.architecture").unwrap_or_default();
    let elements: u64 = model
        .tensors()
        .iter()
        .map(|tensor| tensor.info.shape.iter().fold(1u64, |product, n| product.saturating_mul(*n)))
        .fold(0, u64::saturating_add);
    let config = json!({
        "model_format": "gguf",
        "model_family": architecture,
        "model_families": [architecture],
        "model_type": human(elements),
        "file_type": file_type(metadata).unwrap_or("unknown"),
    });
    match config {
        Json::Object(config) => config,
        _ => Map::new(),
    }
}

/// Formats a number of parameters as Ollama does.
fn human(count: u64) -> String {
    let (scaled, decimals, unit) = match count {
        1_000_000_000.. => (count as f64 / 1e9, 1, "B"),
        1_000_000.. => (count as f64 / 1e6, 2, "M"),
        1_000.. => (count as f64 / 1e3, 0, "K"),
        _ => (count as f64, 0, ""),
    };
    let decimals = if scaled.fract() == 0.0 { 0 } else { decimals };
    format!("{scaled:.decimals$}{unit}")
}

/// A conversation of all roles.
fn conversation() -> Json {
    json!([
        { "role": "system", "content": "S" }, { "role": "user", "content": "U" },
        { "role": "assistant", "content": "A" }, { "role": "user", "content": "V" },
    ])
}

/// Returns the format of the chat template: it must render the conversation exactly, and add nothing without a system
/// prompt.
fn format(metadata: &Metadata) -> Result<Option<&'static Format>, Failure> {
    let Ok(Some(template)) = TemplateSource::from_metadata(metadata, None) else { return Ok(None) };
    let renderer = render_template::renderer()?;
    let render = |messages: Json| {
        let context = Context::new(messages);
        renderer.render(&template, &context).ok()
    };
    let user = json!([{ "role": "user", "content": "U" }]);
    let (Some(all), Some(alone)) = (render(conversation()), render(user)) else { return Ok(None) };
    let is_same = |format: &&Format| {
        let before = all.strip_suffix(format.rendered);
        // Nothing but a BOS token, which Ollama adds by the metadata.
        let system = format.rendered.find('S').unwrap_or_default();
        let turn = &format.rendered[format.rendered.find('U').unwrap_or_default()..];
        let end = &turn[1..turn.find('A').unwrap_or(1)];
        let head = format.rendered[..system].replace("system", "user");
        let before_is_bos = |bos: &str| bos.is_empty() || is_token(metadata, bos);
        before.is_some_and(before_is_bos)
            && before.is_some_and(|bos| alone == format!("{bos}{head}U{end}"))
    };
    Ok(FORMATS.iter().find(is_same))
}

/// Whether a text is the BOS token.
fn is_token(metadata: &Metadata, text: &str) -> bool {
    let id = metadata.u64("tokenizer.ggml.bos_token_id").and_then(|id| usize::try_from(id).ok());
    let tokens = metadata.array("tokenizer.ggml.tokens");
    let token = id.zip(tokens).and_then(|(id, tokens)| tokens.strings()?.nth(id));
    token == Some(text.as_bytes())
}
