//! Templates render as with jinja2 and the settings of transformers.
//!
//! `data/render.py` printed the expected texts.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gguf::{Array, Metadata};
use gguf_tokenizer::template::{Context, Template};
use serde_json::Value as Json;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Json {
    serde_json::from_str(&read(path)).unwrap()
}

/// Returns the vocabulary that `render.py` assumes.
fn metadata(template: &str) -> Metadata {
    let mut metadata = Metadata::new();
    let tokens = ["<unk>", "<s>", "</s>", "<pad>"];
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    for (role, id) in [("unknown", 0u32), ("bos", 1), ("eos", 2), ("padding", 3)] {
        metadata.set(format!("tokenizer.ggml.{role}_token_id"), id);
    }
    metadata.set("tokenizer.chat_template", template);
    metadata
}

fn context(sample: &Json) -> Context {
    let mut context = Context::new(Json::Null);
    // 2026-02-03 14:05:09
    context.now = SystemTime::UNIX_EPOCH + Duration::from_secs(1770127509);
    context.add_generation_prompt = false;
    for (key, value) in sample.as_object().unwrap() {
        match key.as_str() {
            "messages" => context.messages = value.clone(),
            "tools" => context.tools = value.clone(),
            "add_generation_prompt" => context.add_generation_prompt = value.as_bool().unwrap(),
            _ => drop(context.variables.insert(key.clone(), value.clone())),
        }
    }
    context
}

/// Renders every sample with every template and compares the texts.
fn compare(expected: &Path, text: impl Fn(&str) -> String) {
    let samples = json(&data().join("samples.json"));
    let mut differences = Vec::new();
    for (name, by_sample) in json(expected).as_object().unwrap() {
        let text = text(name);
        let template = Template::from_metadata(&metadata(&text), None).map(Option::unwrap);
        for (sample, expected) in by_sample.as_object().unwrap() {
            let context = context(&samples[sample]);
            let ours = match &template {
                Ok(template) => template.render(&context).map_err(|e| e.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if ours.as_deref().ok() != expected.as_str() {
                let expected = expected.as_str().unwrap_or("an error");
                differences.push(format!("{name}, {sample}:\n{expected}\n--- ours:\n{ours:?}\n"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn own_templates_match_jinja2() {
    let folder = data().join("templates");
    compare(&data().join("templates.json"), |name| read(&folder.join(format!("{name}.jinja"))));
}

#[test]
fn zoo_templates_match_jinja2() {
    let Some(folder) = std::env::var_os("GGUF_TEST_DATA") else {
        eprintln!("SKIPPED: set GGUF_TEST_DATA to the folder of reference data");
        return;
    };
    let zoo = Path::new(&folder).join("zoo");
    compare(&data().join("zoo.json"), |name| {
        let config = json(&zoo.join(name).join("tokenizer_config.json"));
        config["chat_template"].as_str().unwrap().to_owned()
    });
}
