//! Facts of a directory of GGUF files for the card of its repository.

mod directory;
mod origin;
mod results;

use std::path::{Path, PathBuf};

use gguf_inspect::summary::Summary;
use gguf_quantize::imatrix::Imatrix;
use gguf_report::card::{Card, CardFile, CardImatrix, CardModel, Making};
use gguf_store::digest::sha256;

use self::directory::{Directory, FoundModel, Kind};
use self::results::Results;
use crate::Error;

/// Facts that files do not state, or state otherwise.
#[derive(Clone, Debug, Default)]
pub struct CardOptions {
    /// Title.
    pub title: Option<String>,
    /// Repository on the Hub, `organization/name`.
    pub repository: Option<String>,
    /// Base models, `organization/name` on the Hub or addresses; those of the metadata if empty.
    pub base_models: Vec<String>,
    /// Author of the quantization.
    pub quantized_by: Option<String>,
    /// License, as an identifier of the Hub.
    pub license: Option<String>,
    /// Task on the Hub, such as `text-generation`.
    pub pipeline_tag: Option<String>,
    /// JSON results of `gguf quality` and `gguf divergence`, besides those in the directory.
    pub results: Vec<PathBuf>,
    /// Importance matrices, besides those in the directory.
    pub imatrices: Vec<PathBuf>,
    /// Calibration text of the importance matrices.
    pub calibration_text: Option<PathBuf>,
    /// Text of the citation.
    pub citation: Option<PathBuf>,
}

/// A card with what its caller needs to write it.
pub struct CollectedCard {
    /// Facts.
    pub card: Card,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Files of the directory that were read, which the card must not replace.
    pub inputs: Vec<PathBuf>,
}

/// Collects the facts of the GGUF files below `dir`.
///
/// # Errors
/// `model-missing` if there is no GGUF; if a file cannot be read or breaks the format; `report-invalid` if a file of
/// `options` holds no results.
pub fn card(dir: &Path, options: &CardOptions) -> Result<CollectedCard, Error> {
    let directory = Directory::read(dir)?;
    let mut results = Results::read(&directory, &options.results)?;
    let mut card = Card {
        repository: options.repository.clone(),
        citation: options.citation.as_deref().map(crate::read_text).transpose()?,
        ..Card::default()
    };
    let mut tags = origin::Tags::default();
    for found in &directory.models {
        let summary = Summary::of(&found.model);
        let mut file = file_of(found, &summary);
        match found.kind {
            Kind::Encoder => card.encoders.push(file),
            Kind::Adapter => card.adapters.push(file),
            Kind::Model => {
                file.loss = results.of(found, &file, &summary, &mut card.measurements)?;
                tags.add(&summary);
                card.doi = card.doi.take().or_else(|| origin::doi(found.model.metadata()));
                let author = summary.origin.quantized_by.clone();
                card.quantized_by = card.quantized_by.take().or(author);
                add_file(&mut card.models, file, found, &summary, options);
            }
        }
    }
    for model in &mut card.models {
        model.files.sort_by_key(|file| std::cmp::Reverse(file.file_bytes));
        model.recommend();
    }
    card.quantized_by = options.quantized_by.clone().or(card.quantized_by);
    let bases = card.models.iter().flat_map(|model| &model.base_models);
    card.base_models = distinct(bases.cloned());
    card.imatrices = imatrices(&directory, options)?;
    card.title = title(&card, options, dir);
    card.languages = tags.languages.clone();
    let has_encoder = directory.models.iter().any(|found| found.kind == Kind::Encoder);
    card.pipeline_tag = options.pipeline_tag.clone().or_else(|| tags.task(has_encoder));
    card.tags = tags.others(card.pipeline_tag.as_deref());
    let mut notes = results.notes();
    notes.extend(origin::notes(&card, &directory.models, options));
    Ok(CollectedCard { card, notes, inputs: directory.inputs() })
}

fn file_of(found: &FoundModel, summary: &Summary) -> CardFile {
    let metadata = found.model.metadata();
    let imatrix = summary.origin.imatrix.as_ref();
    let provenance = summary.origin.provenance.as_ref();
    let types = summary.types.keys().map(ToString::to_string).collect::<Vec<_>>();
    CardFile {
        file: found.path.clone(),
        shards: summary.files,
        file_type: match (summary.file_type, &types[..]) {
            (Some(name), _) => name.to_owned(),
            (None, [only]) => only.clone(),
            _ => "mixed".to_owned(),
        },
        file_bytes: summary.file_bytes,
        bits_per_weight: summary.bits_per_weight(),
        made: Making {
            tool: provenance.and_then(|made| made.tool.clone()),
            source: provenance.and_then(|made| made.source.clone()),
            settings: provenance.and_then(|made| made.settings.clone()),
            source_digest: metadata.str(gguf_convert::provenance::DIGEST).map(str::to_owned),
            imatrix: imatrix.and_then(|of| of.file.as_deref()).map(file_name),
            dataset: imatrix.and_then(|of| of.dataset.as_deref()).map(file_name),
            chunks: imatrix.and_then(|of| of.chunks),
            calibrated: is_calibrated(found),
        },
        ..CardFile::default()
    }
}

fn is_calibrated(found: &FoundModel) -> bool {
    let method = format!("{}method", gguf_calibrate::KEY_PREFIX);
    found.model.metadata().str(&method).is_some()
}

/// Adds a file to its model: that of the same name and architecture.
fn add_file(
    models: &mut Vec<CardModel>,
    file: CardFile,
    found: &FoundModel,
    summary: &Summary,
    options: &CardOptions,
) {
    let name = summary.name.clone().unwrap_or_else(|| found.stem().to_owned());
    let is_same =
        |model: &&mut CardModel| model.name == name && model.architecture == summary.architecture;
    if let Some(model) = models.iter_mut().find(is_same) {
        model.files.push(file);
        return;
    }
    let metadata = found.model.metadata();
    let given = |license: &String| gguf_report::card::License {
        id: license.clone(),
        ..gguf_report::card::License::default()
    };
    models.push(CardModel {
        name,
        description: summary.origin.description.clone(),
        architecture: summary.architecture.clone(),
        parameters: summary.parameters,
        context_length: summary.layers.context_length,
        vocabulary: summary.vocabulary.tokens,
        has_chat_template: summary.vocabulary.template.is_some(),
        license: options.license.as_ref().map(given).or_else(|| origin::license(metadata)),
        base_models: match &options.base_models[..] {
            [] => origin::base_models(metadata, &summary.origin),
            given => given.to_vec(),
        },
        files: vec![file],
    });
}

/// Returns the importance matrices of the directory and of the options.
fn imatrices(directory: &Directory, options: &CardOptions) -> Result<Vec<CardImatrix>, Error> {
    let text = options.calibration_text.as_deref();
    let digest_of = |path: &Path| {
        std::fs::read(path).map(|bytes| sha256(&bytes)).map_err(|fault| Error::read(path, fault))
    };
    let dataset_sha256 = text.map(digest_of).transpose()?;
    let inside = directory.imatrices.iter().map(|(path, file)| (path, Some(file.clone())));
    let all = inside.chain(options.imatrices.iter().map(|path| (path, None)));
    let mut matrices: Vec<CardImatrix> = Vec::new();
    for (path, file) in all {
        let imatrix = Imatrix::open(path)?;
        let sha256 = digest_of(path)?;
        if matrices.iter().any(|known| known.sha256 == sha256) {
            continue;
        }
        let dataset = text.map(|path| path.display().to_string());
        matrices.push(CardImatrix {
            file,
            name: file_name(path.display().to_string()),
            sha256,
            dataset: dataset.or(imatrix.datasets.first().cloned()).map(|name| file_name(&name)),
            dataset_sha256: dataset_sha256.clone(),
            chunks: imatrix.chunk_count.into(),
            chunk_size: imatrix.chunk_size.map(u64::from),
        });
    }
    Ok(matrices)
}

fn title(card: &Card, options: &CardOptions, dir: &Path) -> String {
    let of_repository = card.repository.as_deref().map(file_name);
    let of_models = match &card.models[..] {
        [] => None,
        [model] => Some(format!("{} GGUF", model.name)),
        _ => dir.canonicalize().ok().map(|dir| file_name(dir.display().to_string())),
    };
    let title = options.title.clone().or(of_repository).or(of_models);
    title.unwrap_or_else(|| "GGUF files".to_owned())
}

/// Returns the last part of a path of any system: cards never show folders of a machine.
pub(crate) fn file_name(path: impl AsRef<str>) -> String {
    let path = path.as_ref();
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

/// Returns different items in their order.
fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}
