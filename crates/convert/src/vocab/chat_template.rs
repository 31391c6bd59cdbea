//! Chat templates: one, or several with names.

use std::path::Path;

use gguf::{Array, Error, Metadata};
use serde_json::{Map, Value};

use super::files::Files;

/// The chat templates of a model.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    default: Option<String>,
    /// The others, by name.
    named: Vec<(String, String)>,
}

impl ChatTemplate {
    /// The template in `tokenizer_config.json`, or else in a file beside it.
    pub fn read(
        files: &Files,
        config: &Map<String, Value>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, Error> {
        let Some(value) = config.get("chat_template") else { return Self::beside(files) };
        Ok(match value {
            Value::Null => None,
            Value::String(text) => Some(Self::single(text.clone())),
            Value::Array(list) => Some(Self::list(list)),
            _ => {
                notes.push(
                    "left out the chat template: tokenizer_config.json has neither a text nor a \
                     list there"
                        .to_owned(),
                );
                None
            }
        })
    }

    /// One template.
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

    /// Adds one; its name becomes part of a key, and so keeps only letters, digits and `_`.
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

    fn beside(files: &Files) -> Result<Option<Self>, Error> {
        if let Some(template) = of_file(files)? {
            let mut all = Self::single(template);
            for path in files.folder().with_extension("additional_chat_templates", "jinja")? {
                let name = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy();
                all.add(&name, read_text(files, &path)?);
            }
            return Ok(Some(all));
        }
        let object = files.object("chat_template.json")?;
        Ok(match object.as_ref().and_then(|object| object.get("chat_template")) {
            Some(Value::String(text)) => Some(Self::single(text.clone())),
            Some(Value::Array(list)) => Some(Self::list(list)),
            _ => None,
        })
    }

    /// Appends the keys.
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

/// The template in a file of its own.
pub(super) fn of_file(files: &Files) -> Result<Option<String>, Error> {
    const FILE: &str = "chat_template.jinja";
    files.has(FILE).then(|| read_text(files, FILE)).transpose()
}

/// A text file with line ends as Python reads them, whatever they are in the file.
fn read_text(files: &Files, name: &str) -> Result<String, Error> {
    Ok(files.text(name)?.replace("\r\n", "\n").replace('\r', "\n"))
}
