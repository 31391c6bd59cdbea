//! What a model was made from: base models and datasets.

use gguf::{Metadata, ParameterCount};
use serde_json::{Map, Value};

use super::components::{ModelId, title};
use super::texts::{text, texts};

texts! {
    /// A base model or a dataset: the keys `general.base_model.N.*` or `general.dataset.N.*`.
    pub struct Origin {
        /// Name for people.
        name = "name",
        /// Author.
        author = "author",
        /// Version.
        version = "version",
        /// Organization, as a title.
        organization = "organization",
        /// What it is.
        description = "description",
        /// Web page or paper.
        url = "url",
        /// Digital object identifier.
        doi = "doi",
        /// Universally unique identifier.
        uuid = "uuid",
        /// Where the files are.
        repo_url = "repo_url",
        ..
    }
}

const HUB: &str = "https://huggingface.co/";

impl Origin {
    /// The origins in a model card or override: one reference, or a list of references and
    /// mappings of the fields.
    ///
    /// An entry of another kind is an origin of which nothing is known, as for llama.cpp's converter.
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
                for (key, _, field) in origin.texts_mut() {
                    *field = fields.get(key).and_then(text);
                }
            }
            _ => {}
        }
        origin
    }

    /// From an id on the Hugging Face hub, or a URL.
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

    /// What a model card says to get the keys under `prefix`.
    pub(super) fn card_of(metadata: &Metadata, prefix: &str) -> Map<String, Value> {
        let mut card = Map::new();
        for (name, _) in Self::default().texts() {
            if let Some(text) = metadata.str(&format!("{prefix}.{name}")) {
                card.insert(name.to_owned(), text.into());
            }
        }
        card
    }

    /// Writes the fields as `<prefix>.<field>`.
    pub(super) fn write_to(&self, metadata: &mut Metadata, prefix: &str) {
        for (key, text) in self.texts() {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                metadata.set(format!("{prefix}.{key}"), text.clone());
            }
        }
    }
}

/// The id in the URL of a repository's main page.
fn hub_id(url: &str) -> Option<&str> {
    let id = url.strip_prefix(HUB).or_else(|| url.strip_prefix("http://huggingface.co/"))?;
    let (organization, name) = id.split_once('/')?;
    (!organization.is_empty() && !name.is_empty() && !name.contains('/')).then_some(id)
}
