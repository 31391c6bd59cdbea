//! The `general.*` keys: what a model is called, who made it, from what, under which licence.
//!
//! They are gathered from the model card, the configuration, the name of the directory and an
//! override file, with the precedence of llama.cpp's converter. What it would write, this writes;
//! where it fails, or would write an empty name, this does better, and the place says so.

mod card;
mod components;
mod origin;
mod sampling;
mod texts;

use std::path::Path;

use gguf::{Array, Error, Metadata, ParameterCount};
use gguf_checkpoint::json;
use serde_json::{Map, Value};

use self::components::{ModelId, title};
pub use self::origin::Origin;
pub(crate) use self::sampling::written as sampling_of;
use self::texts::{list, text, texts};

texts! {
    /// What is known of a model as a whole, in the order of the file.
    ///
    /// Every text has its key and, in brackets, the keys of the model card that it is taken from.
    /// An empty text counts as missing.
    pub struct General {
        /// Name for people.
        name = "general.name" ["name", "model_name"],
        /// Author.
        author = "general.author" ["author", "model_author", "model_creator"],
        /// Version, such as `v0.1`.
        version = "general.version" ["version", "model_version"],
        /// Organization, as a title.
        organization = "general.organization" ["organization", "model_organization"],
        /// What the model was tuned for.
        finetune = "general.finetune" ["finetune", "model_finetune"],
        /// The model family with its generation.
        basename = "general.basename" ["basename", "model_basename", "model_type"],
        /// What the model is.
        description = "general.description" ["description", "model_description"],
        /// Who quantized it.
        quantized_by = "general.quantized_by",
        /// Weight class, such as `8B`.
        size_label = "general.size_label" ["size_label", "model_size_label"],
        /// Licence as an SPDX expression; several are joined by commas.
        license = "general.license" ["license"],
        /// Name of the licence for people.
        license_name = "general.license.name" ["license_name"],
        /// Where the licence can be read.
        license_link = "general.license.link" ["license_link"],
        /// Web page or paper of this file.
        url = "general.url",
        /// Digital object identifier of this file.
        doi = "general.doi",
        /// Universally unique identifier of this file.
        uuid = "general.uuid",
        /// Where this file is published.
        repo_url = "general.repo_url",
        /// Web page or paper of the model that was converted.
        source_url = "general.source.url" ["url", "model_url"],
        /// Digital object identifier of the model that was converted.
        source_doi = "general.source.doi" ["doi", "model_doi"],
        /// Universally unique identifier of the model that was converted.
        source_uuid = "general.source.uuid" ["uuid", "model_uuid"],
        /// Where the model that was converted is published.
        source_repo_url = "general.source.repo_url" ["repo_url", "model_repo_url"],
        ..
        /// The models this one was made from; empty and unknown are different in the file.
        base_models: Option<Vec<Origin>>,
        /// The datasets it was trained on.
        datasets: Option<Vec<Origin>>,
        /// Terms to search by.
        tags: Vec<String>,
        /// Languages as two-letter codes.
        languages: Vec<String>,
        /// The keys `general.sampling.*`: recommended sampler settings.
        sampling: Metadata,
    }
}

impl General {
    /// Gathers what is known of the model in `dir`.
    ///
    /// `config` is its parsed `config.json`. `parameters` tell size labels from context lengths in
    /// names, and give the label if none is known. `overrides` is a JSON file of `general.*` keys
    /// (with the lists `general.base_models` and `general.datasets`) that replace what was found;
    /// a null removes. `name` has the last word on the name.
    ///
    /// Of several sources the first one counts: `name`, `overrides`, `README.md`,
    /// `_name_or_path` in `config`, the name of `dir`, `parameters`.
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
        general.take_card(&card::read(dir)?, parameters);
        let id = config.and_then(|config| config.get("_name_or_path")?.as_str());
        // With more slashes it is the path of somebody's directory.
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
        for (_, names, field) in self.texts_mut() {
            *field = names.iter().find_map(|name| card.get(*name).and_then(text));
        }
        let origins = |names: [&str; 3]| {
            let value = names.iter().find_map(|name| card.get(*name))?;
            Some(Origin::list(value, parameters))
        };
        self.base_models = origins(["base_model", "base_models", "base_model_sources"]);
        self.datasets = origins(["datasets", "dataset", "dataset_sources"]);
        let lists = |names: [&str; 2]| {
            names.iter().filter_map(|name| card.get(*name)).flat_map(list).collect()
        };
        self.tags = lists(["tags", "pipeline_tag"]);
        self.languages = lists(["languages", "language"]);
    }

    /// Fills what is still missing from the components of an id.
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
            // An empty `_name_or_path`, as some programs save it, names nothing. llama.cpp's
            // converter takes it for the name, and then writes none.
            if field.is_none() {
                *field = value.filter(|text| !text.is_empty());
            }
        }
    }

    /// llama.cpp's converter ignores `general.license` in this file; here it counts.
    fn take_overrides(&mut self, path: &Path, parameters: &ParameterCount) -> Result<(), Error> {
        let Value::Object(overrides) = json::read(path)? else {
            let help = "write the keys to override as one JSON object";
            return Err(Error::input("json-shape", path, "not a JSON object", help));
        };
        for (key, _, field) in self.texts_mut() {
            match overrides.get(key) {
                Some(Value::Object(_)) => {
                    let what = format!("`{key}` is an object, not a text");
                    return Err(Error::input(
                        "metadata-override",
                        path,
                        what,
                        "write a text, or null to remove the key",
                    ));
                }
                Some(value) => *field = text(value),
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
                *field = list(value);
            }
        }
        sampling::apply(&mut self.sampling, &overrides, path)
    }

    /// Writes the keys in the order of llama.cpp's converter, which has `general.architecture` and
    /// `general.type` before them.
    pub fn write_to(&self, metadata: &mut Metadata) {
        for (key, value) in self.sampling.iter() {
            metadata.set(key.to_owned(), value.clone());
        }
        for (key, text) in self.texts() {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                metadata.set(key, text.clone());
            }
        }
        let origins =
            [("general.base_model", &self.base_models), ("general.dataset", &self.datasets)];
        for (prefix, origins) in origins {
            let Some(origins) = origins else { continue };
            // Their number is bounded by the size of the card or override that lists them.
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

/// The model card from which [`General::load`] takes what `metadata` says.
pub(crate) fn card_of(metadata: &Metadata) -> Map<String, Value> {
    let mut card = Map::new();
    for (key, names, _) in General::default().texts_mut() {
        if let (Some(text), Some(name)) = (metadata.str(key), names.first()) {
            card.insert((*name).to_owned(), text.into());
        }
    }
    for (prefix, name) in
        [("general.base_model", "base_model_sources"), ("general.dataset", "dataset_sources")]
    {
        if let Some(count) = metadata.u64(&format!("{prefix}.count")) {
            // A file can state any number; its keys are what there is.
            let count = count.min(metadata.len() as u64);
            let origins: Vec<Value> = (0..count)
                .map(|i| Origin::card_of(metadata, &format!("{prefix}.{i}")).into())
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

/// The last component of the path; of the absolute path where it ends in `.` or `..`.
fn directory_name(dir: &Path) -> String {
    let absolute = match dir.file_name() {
        Some(_) => None,
        None => dir.canonicalize().ok(),
    };
    let name = absolute.as_deref().unwrap_or(dir).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
