//! The `general.*` keys: name, authors, origin and license of a model.
//!
//! They come from the model card, the configuration, the name of the directory and an override file, with the
//! precedence and the results of llama.cpp's converter. Comments mark the cases in which llama.cpp's converter
//! fails or writes an empty name.

mod model_id;

mod origin;
mod sampling;
mod string_fields;
mod yaml;

use std::path::Path;

use gguf::{Array, Error, Metadata, ParameterCount};
use gguf_checkpoint::json;
use serde_json::{Map, Value};

use self::model_id::{ModelId, title};
pub use self::origin::Origin;
pub(crate) use self::sampling::generation_config;
use self::string_fields::{string, string_fields, strings};

string_fields! {
    /// Values of the `general.*` keys, in the order of the file.
    ///
    /// Each string field has its key and, in brackets, its keys in model cards. An empty string counts as missing.
    pub struct GeneralMetadata {
        /// Display name.
        name = "general.name" ["name", "model_name"],
        /// Author.
        author = "general.author" ["author", "model_author", "model_creator"],
        /// Version, such as `v0.1`.
        version = "general.version" ["version", "model_version"],
        /// Organization, as a title.
        organization = "general.organization" ["organization", "model_organization"],
        /// Purpose of the fine-tune.
        finetune = "general.finetune" ["finetune", "model_finetune"],
        /// Model family and generation.
        basename = "general.basename" ["basename", "model_basename", "model_type"],
        /// Description.
        description = "general.description" ["description", "model_description"],
        /// Person or organization that quantized the model.
        quantized_by = "general.quantized_by",
        /// Size label, such as `8B`.
        size_label = "general.size_label" ["size_label", "model_size_label"],
        /// License as an SPDX expression. Several are joined by commas.
        license = "general.license" ["license"],
        /// Display name of the license.
        license_name = "general.license.name" ["license_name"],
        /// URL of the license text.
        license_link = "general.license.link" ["license_link"],
        /// Web page or paper of this file.
        url = "general.url",
        /// Digital object identifier of this file.
        doi = "general.doi",
        /// Universally unique identifier of this file.
        uuid = "general.uuid",
        /// URL of the repository of this file.
        repo_url = "general.repo_url",
        /// Web page or paper of the source model.
        source_url = "general.source.url" ["url", "model_url"],
        /// Digital object identifier of the source model.
        source_doi = "general.source.doi" ["doi", "model_doi"],
        /// Universally unique identifier of the source model.
        source_uuid = "general.source.uuid" ["uuid", "model_uuid"],
        /// URL of the repository of the source model.
        source_repo_url = "general.source.repo_url" ["repo_url", "model_repo_url"],
        ..
        /// Base models. An empty list and `None` differ in the file.
        base_models: Option<Vec<Origin>>,
        /// Training datasets. An empty list and `None` differ in the file.
        datasets: Option<Vec<Origin>>,
        /// Search terms.
        tags: Vec<String>,
        /// Languages as two-letter codes.
        languages: Vec<String>,
        /// The keys `general.sampling.*`: recommended sampler settings.
        sampling: Metadata,
    }
}

impl GeneralMetadata {
    /// Reads the values for the model in `dir`.
    ///
    /// `config` is its parsed `config.json`. `parameters` distinguish size labels from context lengths in names,
    /// and determine the size label if no source has one. `overrides` is a JSON file of `general.*` keys (with the
    /// lists `general.base_models` and `general.datasets`), in which null removes a key.
    ///
    /// The first source with a value wins: `name`, `overrides`, `README.md`, `_name_or_path` in `config`, the name
    /// of `dir`, `parameters`.
    ///
    /// # Errors
    /// If the model card is not YAML, or `overrides` is missing or does not hold a JSON object with
    /// values of the right types. (llama.cpp's converter ignores a missing one.)
    pub fn load(
        dir: &Path,
        config: Option<&Value>,
        parameters: &ParameterCount,
        overrides: Option<&Path>,
        name: Option<&str>,
    ) -> Result<Self, Error> {
        let mut general = Self { sampling: sampling::recommended(dir), ..Self::default() };
        general.take_card(&yaml::read(dir)?, parameters);
        let id = config.and_then(|config| config.get("_name_or_path")?.as_str());
        // A value with more slashes is a local path.
        if let Some(id) = id.filter(|id| id.matches('/').count() <= 1) {
            general.take_id(ModelId::parse(id, parameters));
        }
        let directory = directory_name(dir);
        general.take_id(ModelId::parse(&directory, parameters));
        if let Some(path) = overrides {
            general.take_overrides(path, parameters)?;
        }
        if let Some(name) = name {
            general.name = Some(name.into());
        }
        general.name.get_or_insert(directory);
        if general.size_label.is_none() {
            general.size_label = parameters.size_label();
        }
        Ok(general)
    }

    fn take_card(&mut self, card: &Map<String, Value>, parameters: &ParameterCount) {
        for (_, names, field) in self.strings_mut() {
            *field = names.iter().find_map(|name| card.get(*name).and_then(string));
        }
        let origins = |names: [&str; 3]| {
            let value = names.iter().find_map(|name| card.get(*name))?;
            Some(Origin::list(value, parameters))
        };
        self.base_models = origins(["base_model", "base_models", "base_model_sources"]);
        self.datasets = origins(["datasets", "dataset", "dataset_sources"]);
        let lists = |names: [&str; 2]| {
            names.iter().filter_map(|name| card.get(*name)).flat_map(strings).collect()
        };
        self.tags = lists(["tags", "pipeline_tag"]);
        self.languages = lists(["languages", "language"]);
    }

    /// Fills missing values from the components of a model id.
    fn take_id(&mut self, id: ModelId) {
        let found = [
            (&mut self.name, Some(title(&id.name))),
            (&mut self.organization, id.organization.as_deref().map(title)),
            (&mut self.basename, id.basename),
            (&mut self.finetune, id.finetune),
            (&mut self.version, id.version),
            (&mut self.size_label, id.size_label),
        ];
        for (field, value) in found {
            // Some programs save an empty `_name_or_path`, which llama.cpp's converter takes as an empty name.
            if field.is_none() {
                *field = value.filter(|text| !text.is_empty());
            }
        }
    }

    /// Applies the override file, including `general.license`, which llama.cpp's converter ignores.
    fn take_overrides(&mut self, path: &Path, parameters: &ParameterCount) -> Result<(), Error> {
        let Value::Object(overrides) = json::read(path)? else {
            let help = "write the overriding keys as one JSON object";
            return Err(Error::input("json-shape", path, "not a JSON object", help));
        };
        for (key, _, field) in self.strings_mut() {
            match overrides.get(key) {
                Some(Value::Object(_)) => {
                    let what = format!("`{key}` is an object; expected a string");
                    return Err(Error::input(
                        "metadata-override",
                        path,
                        what,
                        "write a string, or null to remove the key",
                    ));
                }
                Some(value) => *field = string(value),
                None => {}
            }
        }
        let origins = [
            ("general.base_models", &mut self.base_models),
            ("general.datasets", &mut self.datasets),
        ];
        for (key, field) in origins {
            match overrides.get(key) {
                Some(Value::Null) => *field = None,
                Some(value) => *field = Some(Origin::list(value, parameters)),
                None => {}
            }
        }
        let lists = [("general.tags", &mut self.tags), ("general.languages", &mut self.languages)];
        for (key, field) in lists {
            if let Some(value) = overrides.get(key) {
                *field = strings(value);
            }
        }
        sampling::apply(&mut self.sampling, &overrides, path)
    }

    /// Writes the keys in the order of llama.cpp's converter, which writes `general.architecture` and
    /// `general.type` before them.
    pub fn write_to(&self, metadata: &mut Metadata) {
        for (key, value) in self.sampling.iter() {
            metadata.set(key.to_owned(), value.clone());
        }
        for (key, text) in self.strings() {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                metadata.set(key, text.clone());
            }
        }
        let origins =
            [("general.base_model", &self.base_models), ("general.dataset", &self.datasets)];
        for (prefix, origins) in origins {
            let Some(origins) = origins else { continue };
            // The size of the card or override file bounds their number.
            metadata
                .set(format!("{prefix}.count"), u32::try_from(origins.len()).unwrap_or(u32::MAX));
            for (i, origin) in origins.iter().enumerate() {
                origin.write_to(metadata, &format!("{prefix}.{i}"));
            }
        }
        for (key, list) in [("general.tags", &self.tags), ("general.languages", &self.languages)] {
            if !list.is_empty() {
                metadata.set(key, Array::from_strings(list));
            }
        }
    }
}

/// Returns the model card from which [`GeneralMetadata::load`] reads the values of `metadata`.
pub(crate) fn model_card_entries(metadata: &Metadata) -> Map<String, Value> {
    let mut card = Map::new();
    for (key, names, _) in GeneralMetadata::default().strings_mut() {
        if let (Some(text), Some(name)) = (metadata.str(key), names.first()) {
            card.insert((*name).to_owned(), text.into());
        }
    }
    for (prefix, name) in
        [("general.base_model", "base_model_sources"), ("general.dataset", "dataset_sources")]
    {
        if let Some(count) = metadata.u64(&format!("{prefix}.count")) {
            // The count in a file can be any number. The number of keys bounds it.
            let count = count.min(metadata.len() as u64);
            let origins: Vec<Value> = (0..count)
                .map(|i| Origin::model_card_entries(metadata, &format!("{prefix}.{i}")).into())
                .collect();
            card.insert(name.to_owned(), origins.into());
        }
    }
    for (key, name) in [("general.tags", "tags"), ("general.languages", "language")] {
        if let Some(list) = metadata.array(key).and_then(Array::strings) {
            let list = list.map(|text| String::from_utf8_lossy(text).into_owned());
            card.insert(name.to_owned(), list.collect::<Vec<_>>().into());
        }
    }
    card
}

/// Returns the last component of the path, or of the absolute path if the path ends in `.` or `..`.
fn directory_name(dir: &Path) -> String {
    let absolute = match dir.file_name() {
        Some(_) => None,
        None => dir.canonicalize().ok(),
    };
    let name = absolute.as_deref().unwrap_or(dir).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
