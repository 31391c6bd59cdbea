//! License, base models and tags of the metadata, as the Hub names them.

use gguf::Metadata;
use gguf_inspect::summary::{Origin, Summary};
use gguf_report::card::{Card, License};

use super::directory::FoundModel;
use super::{CardOptions, distinct};

/// Prefix of the addresses of the Hub.
const HUB: &str = "https://huggingface.co/";

/// Tasks of the Hub that models of this format have.
const TASKS: [&str; 22] = [
    "any-to-any",
    "audio-text-to-text",
    "automatic-speech-recognition",
    "feature-extraction",
    "fill-mask",
    "image-text-to-text",
    "image-to-text",
    "question-answering",
    "sentence-similarity",
    "summarization",
    "text-classification",
    "text-generation",
    "text-ranking",
    "text-to-audio",
    "text-to-image",
    "text-to-speech",
    "text-to-video",
    "token-classification",
    "translation",
    "video-text-to-text",
    "visual-question-answering",
    "zero-shot-classification",
];

/// Tags and languages of several files.
#[derive(Default)]
pub(super) struct Tags {
    pub languages: Vec<String>,
    all: Vec<String>,
    /// Task of the first model, by its architecture.
    derived: Option<&'static str>,
    has_imatrix: bool,
    has_chat_template: bool,
}

impl Tags {
    /// Adds those of a file.
    pub fn add(&mut self, summary: &Summary) {
        let origin = &summary.origin;
        self.languages = distinct(self.languages.drain(..).chain(origin.languages.clone()));
        self.all = distinct(self.all.drain(..).chain(origin.tags.clone()));
        self.derived = self.derived.or_else(|| task_of(summary));
        self.has_imatrix |= origin.imatrix.is_some();
        self.has_chat_template |= summary.vocabulary.template.is_some();
    }

    /// Returns the task: that of the tags, otherwise that of the architecture.
    pub fn task(&self, has_encoder: bool) -> Option<String> {
        let tagged = self.all.iter().find(|tag| TASKS.contains(&tag.as_str())).cloned();
        tagged.or_else(|| match has_encoder {
            true => Some("image-text-to-text".to_owned()),
            false => self.derived.map(str::to_owned),
        })
    }

    /// Returns the tags without the task.
    pub fn others(&self, task: Option<&str>) -> Vec<String> {
        let own = [(self.has_imatrix, "imatrix"), (self.has_chat_template, "conversational")];
        let own = own.into_iter().filter(|(is_set, _)| *is_set).map(|(_, tag)| tag.to_owned());
        let tags = self.all.iter().filter(|tag| Some(tag.as_str()) != task).cloned();
        distinct(tags.chain(own))
    }
}

/// Returns the task of an architecture.
fn task_of(summary: &Summary) -> Option<&'static str> {
    const ENCODERS: [&str; 9] = [
        "bert",
        "modern-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "neo-bert",
        "jina-bert-v2",
        "jina-bert-v3",
        "eurobert",
        "gemma-embedding",
    ];
    match summary.architecture.as_deref()? {
        "whisper" => Some("automatic-speech-recognition"),
        name if ENCODERS.contains(&name) => Some("feature-extraction"),
        _ if summary.vocabulary.tokens.is_some() => Some("text-generation"),
        _ => None,
    }
}

/// Returns the license. Free names, which the Hub does not know, have the identifier `other`.
pub(super) fn license(metadata: &Metadata) -> Option<License> {
    let text = |key: &str| metadata.str(key).filter(|text| !text.is_empty()).map(str::to_owned);
    let (id, name) = (text("general.license"), text("general.license.name"));
    let link = text("general.license.link");
    let is_id = |id: &String| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        id.len() <= 40 && id.chars().all(is_plain)
    };
    let known = id.as_deref().map(str::to_lowercase).filter(is_id).filter(|id| id != "other");
    match known {
        Some(id) => Some(License { id, name: None, link }),
        None => {
            let name = name.or(id.filter(|id| id != "other"));
            let has_license = name.is_some() || link.is_some();
            has_license.then(|| License { id: "other".to_owned(), name, link })
        }
    }
}

/// Returns the base models: the source of the conversion, otherwise the parents of the model.
pub(super) fn base_models(metadata: &Metadata, origin: &Origin) -> Vec<String> {
    const SOURCES: [&str; 3] =
        ["general.source.repo_url", "general.source.huggingface.repository", "general.source.url"];
    let sources = SOURCES.iter().filter_map(|key| metadata.str(key)).filter(|url| !url.is_empty());
    if let Some(source) = sources.map(repository).next() {
        return vec![source];
    }
    distinct(origin.base_models.iter().filter_map(|base| base.url.as_deref()).map(repository))
}

/// Returns `organization/name` of an address of the Hub; other addresses as they are.
fn repository(address: &str) -> String {
    let Some(path) = address.strip_prefix(HUB) else { return address.to_owned() };
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).take(2).collect();
    parts.join("/")
}

/// Returns the DOI of the model.
pub(super) fn doi(metadata: &Metadata) -> Option<String> {
    let doi = ["general.source.doi", "general.doi", "general.base_model.0.doi"];
    doi.iter().find_map(|key| metadata.str(key)).filter(|doi| !doi.is_empty()).map(str::to_owned)
}

/// Returns notes about facts that the Hub needs and no file states.
pub(super) fn notes(card: &Card, models: &[FoundModel], options: &CardOptions) -> Vec<String> {
    let mut notes = Vec::new();
    if card.base_models.is_empty() {
        notes.push("no file names its base model; --base-model ORG/NAME links it".to_owned());
    } else if options.base_models.is_empty() {
        let has_source = |found: &FoundModel| {
            let metadata = found.model.metadata();
            metadata.iter().any(|(key, _)| key.starts_with("general.source."))
        };
        if !models.iter().all(has_source) {
            let bases = card.base_models.join(", ");
            notes.push(format!(
                "base_model is {bases}, the parent model of the metadata; if the files were made of another one, name it \
                 with --base-model"
            ));
        }
    }
    if card.models.iter().all(|model| model.license.is_none()) {
        notes.push("no file states a license; --license ID sets it".to_owned());
    }
    if card.measurements.is_empty() {
        notes.push(
            "no measurements: `gguf quality REFERENCE --files DIR/*.gguf -f text.txt --json` measures the files, --results \
             FILE adds the results"
                .to_owned(),
        );
    }
    notes
}
