//! `config.json`: hyperparameters of a checkpoint, with errors that name the field.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gguf::Error;
use serde_json::{Map, Value};

use crate::{json, params};

/// Configuration of a checkpoint.
#[derive(Clone, Debug)]
pub struct Config {
    path: PathBuf,
    root: Value,
    /// JSON files beside it; `None` if they are in its directory.
    siblings: Option<BTreeMap<&'static str, Value>>,
}

impl Config {
    /// Returns the configuration file in `dir`, if there is one: `config.json`, or else Mistral's
    /// `params.json`, whose fields are renamed to those of `config.json`.
    pub fn file_in(dir: &Path) -> Option<PathBuf> {
        let names = ["config.json", params::FILE];
        names.iter().map(|name| dir.join(name)).find(|path| path.is_file())
    }

    /// Whether it was read from a `params.json`.
    pub fn is_params_json(&self) -> bool {
        self.path.ends_with(params::FILE)
    }

    /// Reads `config.json` in `dir`, or its substitute ([`Config::file_in`]).
    ///
    /// Fields of a nested configuration of the text model (`text_config` or one of its other names)
    /// are moved to the top level, as in llama.cpp's converter.
    ///
    /// # Errors
    /// If it is missing, or is not a JSON object.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        Ok(Self::read_whole(dir)?.text())
    }

    /// Reads `config.json` in `dir` without moving nested fields.
    ///
    /// # Errors
    /// If it is missing, or is not a JSON object.
    pub fn read_whole(dir: &Path) -> Result<Self, Error> {
        let Some(path) = Self::file_in(dir) else {
            return Err(Error::input(
                "config-missing",
                dir,
                "has no `config.json`",
                "name a directory with a Hugging Face checkpoint",
            ));
        };
        let Value::Object(fields) = json::read(&path)? else {
            let help = "download the file again";
            return Err(Error::input("json-shape", &path, "is not a JSON object", help));
        };
        let is_params = path.ends_with(params::FILE);
        let fields = if is_params { params::as_config(fields) } else { fields };
        Ok(Self { path, root: Value::Object(fields), siblings: None })
    }

    /// Creates a configuration inferred from the weights at `path`.
    pub fn from_weights(path: PathBuf, root: Value) -> Self {
        Self { path, root, siblings: None }
    }

    /// Returns the configuration with the fields of the text model at the top level.
    pub fn text(&self) -> Self {
        let mut config = self.clone();
        if let Some(fields) = config.root.as_object_mut()
            && let Some(text) = text_fields(fields)
        {
            for (name, value) in text {
                if !value.is_null() || !fields.contains_key(&name) {
                    fields.insert(name, value);
                }
            }
        }
        config
    }

    /// Creates a configuration from the fields of the JSON file `name` beside this one.
    pub fn sibling(&self, name: &str, fields: Map<String, Value>) -> Self {
        let path = self.path.with_file_name(name);
        Self { path, root: Value::Object(fields), siblings: self.siblings.clone() }
    }

    /// Returns the configuration as JSON.
    pub fn json(&self) -> &Value {
        &self.root
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the model class: the first of `architectures`.
    ///
    /// # Errors
    /// If there is none.
    pub fn class(&self) -> Result<&str, Error> {
        let stated = self.root.get("architectures").and_then(|names| names.get(0)?.as_str());
        // The configurations of the original Mamba have their own fields.
        let mamba = || match self.root.get("ssm_cfg")?["layer"].as_str() {
            Some("Mamba2") => Some("Mamba2ForCausalLM"),
            _ => Some("MambaForCausalLM"),
        };
        stated.or_else(mamba).ok_or_else(|| self.missing("architectures", "the model class"))
    }

    /// Returns the object in a field as a configuration; empty if the field is missing.
    pub fn part(&self, name: &str) -> Self {
        let part = self.root.get(name).filter(|part| part.is_object());
        Self {
            path: self.path.clone(),
            root: part.cloned().unwrap_or_else(|| Value::Object(Default::default())),
            siblings: self.siblings.clone(),
        }
    }

    /// Reads a JSON file beside the configuration, if it exists.
    ///
    /// # Errors
    /// If it is not valid JSON.
    pub fn file(&self, name: &str) -> Result<Option<Value>, Error> {
        match (&self.siblings, self.path.parent()) {
            (Some(files), _) => Ok(files.get(name).cloned()),
            (None, Some(dir)) => json::read_optional(&dir.join(name)),
            (None, None) => Ok(None),
        }
    }

    /// Sets the model class.
    pub fn set_class(&mut self, class: &str) {
        self.set("architectures", vec![class]);
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        if let Some(fields) = self.root.as_object_mut() {
            fields.insert(name.to_owned(), value.into());
        }
    }

    /// Sets a field unless it exists and is not null, as a default of the class in `transformers`.
    pub fn default(&mut self, name: &str, value: impl Into<Value>) {
        if self.find(&[name]).is_none() {
            self.set(name, value);
        }
    }

    /// Returns the first of these fields that exists and is not null.
    pub fn find(&self, names: &[&str]) -> Option<(&str, &Value)> {
        let fields = self.root.as_object()?;
        names.iter().find_map(|name| {
            let (name, value) = fields.get_key_value(*name)?;
            (!value.is_null()).then_some((name.as_str(), value))
        })
    }

    /// Returns an unsigned integer under the first of these names that exists.
    ///
    /// # Errors
    /// If the field has another type or exceeds 32 bits.
    pub fn u32(&self, names: &[&str]) -> Result<Option<u32>, Error> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.wrong(name, value, "a number from 0 to 4294967295"))
    }

    /// Returns a number under the first of these names that exists.
    ///
    /// # Errors
    /// If the field has another type.
    pub fn f32(&self, names: &[&str]) -> Result<Option<f32>, Error> {
        Ok(self.f64(names)?.map(|number| number as f32))
    }

    /// Like [`Config::f32`], in double precision.
    ///
    /// # Errors
    /// If the field has another type.
    pub fn f64(&self, names: &[&str]) -> Result<Option<f64>, Error> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong(name, value, "a number"))
    }

    /// Returns a boolean, if the field exists.
    ///
    /// # Errors
    /// If the field has another type.
    pub fn bool(&self, name: &str) -> Result<Option<bool>, Error> {
        let Some((name, value)) = self.find(&[name]) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(name, value, "true or false"))
    }

    /// Like [`Config::u32`], for a list.
    ///
    /// # Errors
    /// If the field has another type.
    pub fn u32s(&self, name: &str) -> Result<Option<Vec<u32>>, Error> {
        let Some((name, value)) = self.find(&[name]) else { return Ok(None) };
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let numbers = value.as_array().and_then(|list| list.iter().map(number).collect());
        numbers.map(Some).ok_or_else(|| self.wrong(name, value, "a list of numbers"))
    }

    /// Like [`Config::f32`], for a list.
    ///
    /// # Errors
    /// If the field has another type.
    pub fn f32s(&self, name: &str) -> Result<Option<Vec<f32>>, Error> {
        let Some((name, value)) = self.find(&[name]) else { return Ok(None) };
        let number = |value: &Value| value.as_f64().map(|number| number as f32);
        let numbers = value.as_array().and_then(|list| list.iter().map(number).collect());
        numbers.map(Some).ok_or_else(|| self.wrong(name, value, "a list of numbers"))
    }

    /// Like [`Config::f32`], for a required field.
    ///
    /// # Errors
    /// Also if it is missing.
    pub fn require_f32(&self, names: &[&str], meaning: &str) -> Result<f32, Error> {
        self.f32(names)?.ok_or_else(|| self.missing(names[0], meaning))
    }

    /// Like [`Config::f64`], for a required field.
    ///
    /// # Errors
    /// Also if it is missing.
    pub fn require_f64(&self, names: &[&str], meaning: &str) -> Result<f64, Error> {
        self.f64(names)?.ok_or_else(|| self.missing(names[0], meaning))
    }

    /// Like [`Config::u32`], for a required field that must not be zero.
    ///
    /// # Errors
    /// Also if it is missing or zero.
    pub fn require_u32(&self, names: &[&str], meaning: &str) -> Result<u32, Error> {
        match self.u32(names)? {
            Some(0) => Err(self.wrong(names[0], &Value::from(0), "a number above 0")),
            Some(number) => Ok(number),
            None => Err(self.missing(names[0], meaning)),
        }
    }

    /// Builds the error that a required field is missing.
    pub fn missing(&self, name: &str, meaning: &str) -> Error {
        Error::input(
            "config-field-missing",
            &self.path,
            format!("has no field `{name}` ({meaning})"),
            "add the field or take the file from the model's repository",
        )
    }

    /// Builds the error that a field has an invalid value.
    pub fn wrong(&self, name: &str, value: &Value, expected: &str) -> Error {
        let mut shown = value.to_string();
        if shown.len() > 40 {
            shown = format!("{}...", shown.chars().take(40).collect::<String>());
        }
        let what = format!("field `{name}` is {shown}; expected {expected}");
        Error::input("config-field", &self.path, what, "correct the field")
    }
}

/// Removes and returns the configuration of the text model inside that of a larger model.
fn text_fields(fields: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    const NAMES: [&str; 5] = ["text_config", "llm_config", "lm_config", "language_config", "lfm"];
    if let Some(Value::Object(mut thinker)) = fields.remove("thinker_config") {
        return text_fields(&mut thinker);
    }
    NAMES.iter().find_map(|name| match fields.remove(*name) {
        Some(Value::Object(text)) => Some(text),
        _ => None,
    })
}

impl Config {
    /// Creates a configuration without a file.
    pub fn of(root: Value) -> Self {
        Self { path: "config.json".into(), root, siblings: Some(BTreeMap::new()) }
    }

    /// Sets the JSON files beside it.
    pub fn siblings(self, files: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self { siblings: Some(files.into_iter().collect()), ..self }
    }
}
