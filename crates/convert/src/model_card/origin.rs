//! Base models and datasets of a model.

use gguf::{Metadata, ParameterCount};
use serde_json::{Map, Value};

use super::model_id::{ModelId, title};
use super::string_fields::{string, string_fields};

string_fields! {
    /// Base model or dataset: the keys `general.base_model.N.*` or `general.dataset.N.*`.
    pub struct Origin {
        /// Display name.
        name = "name",
        /// Author.
        author = "author",
        /// Version.
        version = "version",
        /// Organization, as a title.
        organization = "organization",
        /// Description.
        description = "description",
        /// Web page or paper.
        url = "url",
        /// Digital object identifier.
        doi = "doi",
        /// Universally unique identifier.
        uuid = "uuid",
        /// URL of the repository.
        repo_url = "repo_url",
        ..
    }
}

const HUB: &str = "https://huggingface.co/";

impl Origin {
    /// Reads the origins in a model card or override file: one reference, or a list of references and objects.
    ///
    /// As in llama.cpp's converter, an entry of another type is an origin without values.
    pub(super) fn list(value: &Value, parameters: &ParameterCount) -> Vec<Self> {
        match value {
            Value::String(reference) => vec![Self::from_reference(reference, parameters)],
            Value::Array(entries) => {
                entries.iter().map(|entry| Self::from_entry(entry, parameters)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn from_entry(entry: &Value, parameters: &ParameterCount) -> Self {
        let mut origin = Self::default();
        match entry {
            Value::String(reference) => return Self::from_reference(reference, parameters),
            Value::Object(fields) => {
                for (key, _, field) in origin.strings_mut() {
                    *field = fields.get(key).and_then(string);
                }
            }
            _ => {}
        }
        origin
    }

    /// Reads a Hugging Face model id or a URL.
    fn from_reference(reference: &str, parameters: &ParameterCount) -> Self {
        let schemes = ["http://", "https://", "ssh://"];
        let (url, id) = if schemes.iter().any(|scheme| reference.starts_with(scheme)) {
            (Some(reference.into()), hub_id(reference))
        } else {
            (None, Some(reference))
        };
        let Some(id) = id else { return Self { repo_url: url, ..Self::default() } };
        let ModelId { name, organization, version, .. } = ModelId::parse(id, parameters);
        Self {
            repo_url: url.or_else(|| Some(format!("{HUB}{}/{name}", organization.as_ref()?))),
            name: Some(title(&name)),
            organization: organization.as_deref().map(title),
            version,
            ..Self::default()
        }
    }

    /// Returns the model card entry for the keys under `prefix`.
    pub(super) fn model_card_entries(metadata: &Metadata, prefix: &str) -> Map<String, Value> {
        let mut card = Map::new();
        for (name, _) in Self::default().strings() {
            if let Some(text) = metadata.str(&format!("{prefix}.{name}")) {
                card.insert(name.to_owned(), text.into());
            }
        }
        card
    }

    /// Writes the fields as `<prefix>.<field>`.
    pub(super) fn write_to(&self, metadata: &mut Metadata, prefix: &str) {
        for (key, text) in self.strings() {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                metadata.set(format!("{prefix}.{key}"), text.clone());
            }
        }
    }
}

/// Returns the model id in the URL of a repository's main page.
fn hub_id(url: &str) -> Option<&str> {
    let id = url.strip_prefix(HUB).or_else(|| url.strip_prefix("http://huggingface.co/"))?;
    let (organization, name) = id.split_once('/')?;
    (!organization.is_empty() && !name.is_empty() && !name.contains('/')).then_some(id)
}
