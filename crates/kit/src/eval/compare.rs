//! KL divergence of models from a reference model or a logits file.

use std::collections::BTreeMap;
use std::path::Path;

use gguf_eval::part::{Divergences, Part, Tally};
use gguf_eval::{Chunks, Comparison, Divergence, LogitsFile, LogitsWriter, Reference, Subject};
use gguf_store::Progress;
use gguf_store::digest::sha256;
use gguf_tokenizer::Tokenizer;

use super::evaluated_model::EvaluatedModel;
use super::part_writer::{identity, text_digest};
use super::{PartWriter, SaveLogits, Task};
use crate::run::ExecutorOptions;
use crate::{Error, tensor_digest};

/// Reference of a comparison.
#[derive(Clone, Copy)]
pub enum Against<'a> {
    /// Source of a model or checkpoint.
    Model(&'a str),
    /// A logits file, which contains the text.
    Logits(&'a Path),
}

impl Against<'_> {
    /// Returns the name of the reference as the user gave it.
    pub fn name(&self) -> String {
        match self {
            Self::Model(source) => (*source).to_owned(),
            Self::Logits(path) => path.display().to_string(),
        }
    }
}

/// Options of a comparison.
#[derive(Clone, Copy)]
pub struct CompareOptions<'c> {
    /// The reference.
    pub against: Against<'c>,
    /// Sources of the models.
    pub models: &'c [String],
    /// Options of the executors.
    pub options: &'c ExecutorOptions,
    /// Text and chunks; with a logits file only the number of chunks applies.
    pub task: &'c Task,
    /// Number of worst predictions per model.
    pub worst: usize,
    /// Destination of the logits of the reference.
    pub save: Option<SaveLogits<'c>>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct ComparisonReport {
    /// Result of each model.
    pub models: Vec<Divergence>,
    /// Digest of the tensors of each model, by which its file is recognized.
    pub tensor_digests: Vec<Option<String>>,
    /// Bytes of the tokens in the worst predictions.
    pub tokens: BTreeMap<u32, Vec<u8>>,
}

impl ComparisonReport {
    /// Returns the text of tokens.
    pub fn text(&self, ids: &[u32]) -> String {
        let bytes = ids.iter().filter_map(|id| self.tokens.get(id)).flatten();
        String::from_utf8_lossy(&bytes.copied().collect::<Vec<_>>()).into_owned()
    }

    /// Returns the result in a part.
    pub(super) fn from_part(part: &Part) -> Self {
        let models = totals(part).into_iter().cloned().collect();
        let digests = part.portions.iter().map(|portion| portion.tensor_digest.clone());
        Self { models, tensor_digests: digests.collect(), tokens: part.tokens.clone() }
    }
}

/// Computes the KL divergence of models from a reference. Calls `on_chunk` with the results so far after each chunk.
///
/// # Errors
/// `vocabulary-differs` if a model has other tokens than the reference; as [`super::perplexity`] and
/// [`LogitsFile::open`].
pub fn divergence(
    compare: &CompareOptions<'_>,
    part_writer: &mut PartWriter,
    on_chunk: &mut dyn FnMut(&[&Divergence]),
    progress: &dyn Progress,
) -> Result<ComparisonReport, Error> {
    let CompareOptions { options, task, worst, .. } = *compare;
    let reference = OpenReference::open(compare, progress)?;
    let mut models: Vec<EvaluatedModel> = Vec::with_capacity(compare.models.len());
    for source in compare.models {
        let model = EvaluatedModel::open(source, options, progress)?;
        // A logits file records only the number of tokens.
        if let Some(known) = reference.model().or(models.first()) {
            known.require_vocabulary(&model)?;
        }
        models.push(model);
    }
    let Some(known) = reference.model().or(models.first()) else {
        return Ok(ComparisonReport::default());
    };
    let chunks = reference.chunks(known, task)?;
    let mut identity = identity("divergence", text_digest(task), options, task)?;
    identity.insert("number of the worst predictions".to_owned(), worst.to_string());
    if part_writer.has_file() {
        identity.insert("reference".to_owned(), reference.digest()?);
    }
    let empty = Tally::Divergence(Divergences::default());
    let (first, rest) =
        part_writer.begin(identity, &models.iter().collect::<Vec<_>>(), chunks.count(), &empty)?;
    part_writer.part().reference = Some(compare.against.name());
    for (number, model) in (first..).zip(&models) {
        part_writer.portion(number).tensor_digest = Some(tensor_digest::of_model(model.model())?);
    }
    let chunks = chunks.only(rest);
    let save = match (compare.save, reference.model()) {
        (Some(save), Some(model)) => Some(save.begin(model, &chunks)?),
        _ => None,
    };
    let subjects: Vec<Subject> = models.iter().map(EvaluatedModel::subject).collect();
    let comparison = Comparison {
        reference: reference.reference(),
        models: &subjects,
        chunks: &chunks,
        options: task.run,
        worst,
        save: save.as_ref(),
    };
    let readers = subjects.len() + usize::from(reference.model().is_some());
    progress.begin("reading", (chunks.count() * (chunks.chunk_len() - 1) * readers) as u64);
    let mut on_chunk = |found: Vec<Divergence>| {
        for (number, found) in found.iter().enumerate() {
            if let Tally::Divergence(all) = &mut part_writer.portion(first + number).tally {
                all.add(found);
            }
        }
        add_tokens(part_writer.part(), &known.tokenizer);
        on_chunk(&totals(part_writer.part()));
        part_writer.write(false)
    };
    let result = comparison.run(&mut on_chunk, progress);
    part_writer.end(result)?;
    save.map_or(Ok(()), LogitsWriter::commit)?;
    Ok(ComparisonReport::from_part(part_writer.part()))
}

/// Returns the result of each model so far.
fn totals(part: &Part) -> Vec<&Divergence> {
    let divergences = part.portions.iter().filter_map(|portion| match &portion.tally {
        Tally::Divergence(all) => Some(all.total()),
        _ => None,
    });
    divergences.collect()
}

/// Adds the bytes of the tokens in the worst predictions to a part.
fn add_tokens(part: &mut Part, tokenizer: &Tokenizer) {
    let mut ids = Vec::new();
    for miss in totals(part).iter().flat_map(|model| model.worst.misses()) {
        ids.extend([miss.actual.id, miss.by_reference.id, miss.by_model.id]);
        ids.extend(&miss.before);
    }
    for id in ids {
        let bytes = || tokenizer.token_bytes(id).unwrap_or_default();
        part.tokens.entry(id).or_insert_with(bytes);
    }
}

/// An open reference.
enum OpenReference {
    Model(Box<EvaluatedModel>, Subject),
    Logits(LogitsFile),
}

impl OpenReference {
    fn open(compare: &CompareOptions<'_>, progress: &dyn Progress) -> Result<Self, Error> {
        Ok(match compare.against {
            Against::Model(source) => {
                let model = EvaluatedModel::open(source, compare.options, progress)?;
                let subject = model.subject();
                Self::Model(Box::new(model), subject)
            }
            Against::Logits(path) => Self::Logits(LogitsFile::open(path)?),
        })
    }

    fn model(&self) -> Option<&EvaluatedModel> {
        match self {
            Self::Model(model, _) => Some(model),
            Self::Logits(_) => None,
        }
    }

    fn reference(&self) -> Reference<'_> {
        match self {
            Self::Model(_, subject) => Reference::Model(subject),
            Self::Logits(file) => Reference::Logits(file),
        }
    }

    /// Returns the chunks of the text for the vocabulary of `known`.
    fn chunks(&self, known: &EvaluatedModel, task: &Task) -> Result<Chunks, Error> {
        match self {
            Self::Model(..) => known.chunks(task),
            Self::Logits(file) => file.chunks(known.first(), task.cut.count),
        }
    }

    /// Returns a digest that identifies the reference on other machines.
    fn digest(&self) -> Result<String, Error> {
        match self {
            Self::Model(model, _) => model.digest(),
            Self::Logits(file) => Ok(sha256(&file.sample()?)),
        }
    }
}
