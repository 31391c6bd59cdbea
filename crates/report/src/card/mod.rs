//! Model card of a repository of GGUF files, as Markdown with YAML front matter.
//!
//! The Hugging Face Hub shows the card and reads its front matter. Values come from the metadata of files and are escaped.

mod front_matter;
mod sections;

use gguf_eval::recommendation::{Purpose, SizeAndLoss, dominating, recommended};
use serde::Serialize;

pub use self::front_matter::front_matter_of_file;

/// Facts of a model card.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Card {
    /// Title.
    pub title: String,
    /// Repository on the Hub, `organization/name`.
    pub repository: Option<String>,
    /// Base models: `organization/name` on the Hub, or addresses.
    pub base_models: Vec<String>,
    /// Author of the quantization.
    pub quantized_by: Option<String>,
    /// Task, such as `text-generation`.
    pub pipeline_tag: Option<String>,
    /// Language codes.
    pub languages: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Models, each with its files.
    pub models: Vec<CardModel>,
    /// Vision and audio encoders (mmproj).
    pub encoders: Vec<CardFile>,
    /// LoRA adapters.
    pub adapters: Vec<CardFile>,
    /// Importance matrices.
    pub imatrices: Vec<CardImatrix>,
    /// Measurements of the files.
    pub measurements: Vec<Measurement>,
    /// Citation of the base model: BibTeX, or another text.
    pub citation: Option<String>,
    /// DOI of the base model.
    pub doi: Option<String>,
}

/// A model and its files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CardModel {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Number of parameters.
    pub parameters: u64,
    /// Context size in tokens.
    pub context_length: Option<u64>,
    /// Number of tokens in the vocabulary.
    pub vocabulary: Option<u64>,
    /// Whether the files have a chat template.
    pub has_chat_template: bool,
    /// License.
    pub license: Option<License>,
    /// Base models, as in [`Card::base_models`].
    pub base_models: Vec<String>,
    /// Files, the largest first.
    pub files: Vec<CardFile>,
}

/// A license.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct License {
    /// Identifier on the Hub, such as `apache-2.0`, or `other`.
    pub id: String,
    /// Name of a license without an identifier.
    pub name: Option<String>,
    /// Address of the text.
    pub link: Option<String>,
}

/// A file, or the shards of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CardFile {
    /// Path in the repository; of the first shard, if there are several.
    pub file: String,
    /// Number of shards.
    pub shards: usize,
    /// Quantization type.
    #[serde(rename = "type")]
    pub file_type: String,
    /// Size of the file, or of all shards, in bytes.
    pub file_bytes: u64,
    /// Bits of tensor data per weight.
    pub bits_per_weight: f64,
    /// Loss, if it was measured.
    pub loss: Option<Loss>,
    /// Use that the file is recommended for: `nearly lossless`, `balanced` or `small`.
    pub recommended_for: Option<&'static str>,
    /// File that is no larger and has a lower KL divergence, beyond the standard error.
    pub dominated_by: Option<String>,
    /// Origin of the file.
    pub made: Making,
}

/// Measured loss of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Loss {
    /// Mean KL divergence from the reference model, in nats.
    pub mean_kld: f64,
    /// Standard error.
    pub mean_kld_error: f64,
    /// Top-1 agreement with the reference model, in percent.
    pub top1_agreement: f64,
    /// Standard error.
    pub top1_agreement_error: f64,
    /// Number of the measurement in [`Card::measurements`], from 0.
    pub measurement: usize,
}

/// Conditions of measured losses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Measurement {
    /// Files with the results.
    pub files: Vec<String>,
    /// File name of the reference model.
    pub reference: String,
    /// File name of the text.
    pub text: Option<String>,
    /// SHA-256 of the text.
    pub text_sha256: Option<String>,
    /// Number of evaluated tokens.
    pub tokens: u64,
    /// Context size in tokens.
    pub chunk_size: Option<u64>,
    /// Name and version of the program.
    pub program: Option<String>,
}

impl Measurement {
    /// Whether losses of both measurements can be compared: they are known to have the same conditions.
    pub fn has_conditions_of(&self, other: &Self) -> bool {
        let conditions = |of: &Self| Self { files: Vec::new(), ..of.clone() };
        let is_known = self.text_sha256.is_some() || self.files == other.files;
        is_known && conditions(self) == conditions(other)
    }
}

/// Origin of a file, as its metadata states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Making {
    /// Program and version.
    pub tool: Option<String>,
    /// Name of the source.
    pub source: Option<String>,
    /// Settings as command-line flags.
    pub settings: Option<String>,
    /// Digest of the source.
    pub source_digest: Option<String>,
    /// File name of the importance matrix.
    pub imatrix: Option<String>,
    /// File name of the calibration text.
    pub dataset: Option<String>,
    /// Number of chunks of the calibration text.
    pub chunks: Option<u64>,
    /// Whether weights were calibrated.
    pub calibrated: bool,
}

/// An importance matrix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardImatrix {
    /// Path in the repository; `None` if the file is elsewhere.
    pub file: Option<String>,
    /// File name.
    pub name: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// File name of the calibration text.
    pub dataset: Option<String>,
    /// SHA-256 of the calibration text.
    pub dataset_sha256: Option<String>,
    /// Number of chunks of the calibration text.
    pub chunks: u64,
    /// Chunk size in tokens.
    pub chunk_size: Option<u64>,
}

impl CardModel {
    /// Sets the recommendations for files that were measured under the same conditions, as the page of a quality report
    /// does.
    pub fn recommend(&mut self) {
        let measured = self.files.iter().enumerate();
        let measured = measured.filter_map(|(number, file)| {
            let Loss { mean_kld, mean_kld_error, measurement, .. } = file.loss?;
            let file_bytes = file.file_bytes;
            Some((number, measurement, SizeAndLoss { file_bytes, mean_kld, mean_kld_error }))
        });
        let measured: Vec<_> = measured.collect();
        let Some(&(_, first, _)) = measured.first() else { return };
        if measured.iter().any(|(_, measurement, _)| *measurement != first) {
            return;
        }
        let losses: Vec<_> = measured.iter().map(|(.., loss)| *loss).collect();
        for (purpose, chosen) in recommended(&losses) {
            self.files[measured[chosen].0].recommended_for = Some(purpose.name());
        }
        for (number, other) in dominating(&losses).into_iter().enumerate() {
            let name = other.map(|other| self.files[measured[other].0].file.clone());
            self.files[measured[number].0].dominated_by = name;
        }
    }
}

/// Returns the Markdown of a card.
pub fn card_markdown(card: &Card) -> String {
    let sections = [
        sections::introduction(card),
        sections::models(card),
        sections::encoders(card),
        sections::adapters(card),
        sections::usage(card),
        sections::making(card),
        sections::licenses(card),
        sections::citation(card),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    format!("{}\n{}", front_matter::of_card(card), sections.join("\n"))
}

/// Returns the sentence about the use that a purpose names.
fn meaning_of(name: &str) -> Option<&'static str> {
    Purpose::ALL.into_iter().find(|purpose| purpose.name() == name).map(Purpose::meaning)
}
