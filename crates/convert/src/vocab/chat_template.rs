//! Chat templates.

use std::path::Path;

use gguf::{Array, Error, Metadata};
use serde_json::{Map, Value};

use super::files::Files;

/// The file that `transformers` writes the default template to.
const TEMPLATE_FILE: &str = "chat_template.jinja";

/// Chat templates of a model.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    default: Option<String>,
    /// Other templates, by name.
    named: Vec<(String, String)>,
}

impl ChatTemplate {
    /// Reads the templates as `transformers` does: `chat_template.jinja` takes precedence over
    /// `tokenizer_config.json`, and that over `chat_template.json`.
    pub fn read(
        files: &Files,
        config: &Map<String, Value>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, Error> {
        let from_files = Self::read_files(files)?;
        let from_config = match config.get("chat_template") {
            None if from_files.is_none() => return Self::read_json(files),
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(Self::single(text.clone())),
            Some(Value::Array(list)) => Some(Self::list(list)),
            Some(_) => {
                notes.push(
                    "skipped the chat template: `chat_template` in tokenizer_config.json is neither a \
                     string nor a list"
                        .to_owned(),
                );
                None
            }
        };
        let default = |all: &Option<Self>| all.as_ref().and_then(|all| all.default.clone());
        if from_files.is_some()
            && from_config.is_some()
            && default(&from_files) != default(&from_config)
        {
            notes.push(format!(
                "took the chat template of {TEMPLATE_FILE}; the one in tokenizer_config.json differs"
            ));
        }
        Ok(from_files.or(from_config))
    }

    /// Returns a single template.
    pub fn single(text: String) -> Self {
        Self { default: Some(text), named: vec![] }
    }

    fn list(list: &[Value]) -> Self {
        let mut all = Self { default: None, named: vec![] };
        for entry in list {
            let text = |key| entry.get(key).and_then(Value::as_str);
            if let (Some(name), Some(template)) = (text("name"), text("template")) {
                all.add(name, template.to_owned());
            }
        }
        all
    }

    /// Adds a template. Its name becomes part of a key, so other characters than letters and digits become `_`.
    fn add(&mut self, name: &str, template: String) {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        match &*name {
            "" => {}
            "default" => self.default = Some(template),
            _ => match self.named.iter_mut().find(|(known, _)| *known == name) {
                Some(entry) => entry.1 = template,
                None => self.named.push((name, template)),
            },
        }
    }

    fn read_files(files: &Files) -> Result<Option<Self>, Error> {
        if let Some(template) = template_file(files)? {
            let mut all = Self::single(template);
            for path in files.folder().with_extension("additional_chat_templates", "jinja")? {
                let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy();
                all.add(&name, read_text(files, &path)?);
            }
            return Ok(Some(all));
        }
        Ok(None)
    }

    fn read_json(files: &Files) -> Result<Option<Self>, Error> {
        let object = files.object("chat_template.json")?;
        Ok(match object.as_ref().and_then(|object| object.get("chat_template")) {
            Some(Value::String(text)) => Some(Self::single(text.clone())),
            Some(Value::Array(list)) => Some(Self::list(list)),
            _ => None,
        })
    }

    /// Writes the keys.
    pub fn write(self, metadata: &mut Metadata) {
        let names = Array::from_strings(self.named.iter().map(|(name, _)| name));
        for (name, template) in self.named {
            metadata.set(format!("tokenizer.chat_template.{name}"), template);
        }
        if !names.is_empty() {
            metadata.set("tokenizer.chat_templates", names);
        }
        if let Some(template) = self.default {
            metadata.set("tokenizer.chat_template", template);
        }
    }
}

/// Returns the template in `chat_template.jinja`.
pub(super) fn template_file(files: &Files) -> Result<Option<String>, Error> {
    files.has(TEMPLATE_FILE).then(|| read_text(files, TEMPLATE_FILE)).transpose()
}

/// Reads a text file and normalizes its line ends, as Python does.
fn read_text(files: &Files, name: &str) -> Result<String, Error> {
    Ok(files.text(name)?.replace("\r\n", "\n").replace('\r', "\n"))
}
