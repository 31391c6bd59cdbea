//! Comparison of models with a reference model or logits file.

use std::ops::Range;
use std::sync::Arc;

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Value};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, batches, require_logits};
use crate::scores::Scores;
use crate::{Candidate, Chunks, Divergence, LogitsFile, LogitsWriter, Miss, OnChunk, RunOptions};

/// An evaluated model.
#[derive(Clone)]
pub struct Subject {
    /// Name in messages.
    pub name: String,
    /// Executor of the model.
    pub executor: Arc<Executor>,
}

/// Reference of a comparison.
#[derive(Clone, Copy)]
pub enum Reference<'r> {
    /// A model.
    Model(&'r Subject),
    /// Saved logits of the same chunks.
    Logits(&'r LogitsFile),
}

/// A comparison of models with a reference.
#[derive(Clone, Copy)]
pub struct Comparison<'c> {
    /// The reference.
    pub reference: Reference<'c>,
    /// The models.
    pub models: &'c [Subject],
    /// Chunks of the text; those of the logits file, if the reference is one.
    pub chunks: &'c Chunks,
    /// Execution options.
    pub options: RunOptions,
    /// Number of worst predictions.
    pub worst: usize,
    /// Destination of the logits of the reference.
    pub save: Option<&'c LogitsWriter>,
}

/// Returns the KL divergence of models from a reference model over all chunks.
///
/// # Errors
/// As [`Comparison::run`].
pub fn divergence(
    reference: &Subject,
    models: &[Subject],
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<Divergence>, Error> {
    let reference = Reference::Model(reference);
    let mut found = vec![Divergence::default(); models.len()];
    let mut each = |chunk: Vec<Divergence>| {
        found.iter_mut().zip(&chunk).for_each(|(found, chunk)| found.append(chunk));
        Ok(())
    };
    Comparison { reference, models, chunks, options, worst: 0, save: None }
        .run(&mut each, progress)?;
    Ok(found)
}

/// Number of tokens before a worst prediction.
const CONTEXT_TOKENS: usize = 12;

impl Comparison<'_> {
    /// Evaluates the chunks one after the other. `each` receives the results of all models for a chunk.
    ///
    /// # Errors
    /// `vocabulary-differs` if a model has another number of tokens than the reference; else as
    /// [`crate::perplexity`].
    pub fn run(
        &self,
        each: &mut OnChunk<'_, Vec<Divergence>>,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        self.check_widths()?;
        let Self { models, chunks, options, worst, save, .. } = *self;
        let mut reference = ReferenceReader::new(self)?;
        let new = |model: &Subject| ModelReader::new(model, chunks, options);
        let mut readers = models.iter().map(new).collect::<Result<Vec<_>, _>>()?;
        let batches = batches(chunks, &self.executors(), options);
        for chunk in chunks.numbers() {
            let ids = chunks.inputs(chunk);
            let position = chunks.positions().start + 1;
            let mut found = vec![Divergence::of_chunk(position, worst); models.len()];
            for piece in &batches {
                let at = ChunkBatch { chunks, chunk, ids: &ids, piece: piece.clone() };
                let wanted = reference.read(&at, progress)?;
                let rows = (0..wanted.rows).into_par_iter();
                let scores: Vec<_> = rows.map(|row| reference.scores(wanted.row(row))).collect();
                if let Some(row) = scores.iter().position(Option::is_none) {
                    return Err(reference.nan_error(&at, row, progress));
                }
                if let Some(save) = save {
                    save.write(chunk, at.first(), &wanted)?;
                }
                for (reader, found) in readers.iter_mut().zip(&mut found) {
                    let logits = reader.read(&at, progress)?;
                    let compared = |row: usize| {
                        let of_model = Scores::new(logits.row(row))?;
                        Some(miss(scores[row].as_ref()?, &of_model, &at, row))
                    };
                    let misses: Vec<_> = (0..logits.rows).into_par_iter().map(compared).collect();
                    for (row, miss) in misses.into_iter().enumerate() {
                        match miss {
                            Some(miss) => found.add(miss),
                            None => return Err(reader.nan_error(&at, row, progress)),
                        }
                    }
                }
            }
            for found in &mut found {
                found.worst.with_tokens(|miss| chunks.before(chunk, miss.position, CONTEXT_TOKENS));
            }
            each(found)?;
        }
        Ok(())
    }

    fn check_widths(&self) -> Result<(), Error> {
        let len = |subject: &Subject| subject.executor.width(OutputKind::Logits);
        let wanted = match self.reference {
            Reference::Model(subject) => len(subject),
            Reference::Logits(file) => Some(file.vocabulary_len()),
        };
        let Some(model) = self.models.iter().find(|model| len(model) != wanted) else {
            // Widths are equal: one model stands for all.
            return self
                .models
                .first()
                .map_or(Ok(()), |model| require_logits(&model.executor, self.chunks.largest_id()));
        };
        let said = |len: Option<usize>| len.map_or("none".to_owned(), |len| len.to_string());
        let (of_model, of_reference) = (said(len(model)), said(wanted));
        let what = format!("{} has {of_model} tokens, the reference {of_reference}", model.name);
        Err(Error::request("vocabulary-differs", what, "compare models with the same vocabulary"))
    }

    /// Returns the executors whose logits are in memory at a time. Logits read from a file count like those of a model.
    fn executors(&self) -> Vec<Arc<Executor>> {
        let of_reference = match self.reference {
            Reference::Model(subject) => Some(subject),
            Reference::Logits(_) => self.models.first(),
        };
        self.models.iter().chain(of_reference).map(|subject| subject.executor.clone()).collect()
    }
}

/// A batch of a chunk.
struct ChunkBatch<'w> {
    chunks: &'w Chunks,
    chunk: usize,
    ids: &'w [u32],
    piece: Range<usize>,
}

impl ChunkBatch<'_> {
    /// Returns the first evaluated position of the batch.
    fn first(&self) -> usize {
        self.piece.start.max(self.chunks.positions().start)
    }
}

/// Runs a model.
struct ModelReader {
    name: String,
    predictor: Predictor,
}

impl ModelReader {
    fn new(model: &Subject, chunks: &Chunks, options: RunOptions) -> Result<Self, Error> {
        let predictor = Predictor::new(&model.executor, chunks, options)?;
        Ok(Self { name: model.name.clone(), predictor })
    }

    fn read(&mut self, at: &ChunkBatch<'_>, progress: &dyn Progress) -> Result<Value, Error> {
        let places = at.chunks.positions();
        let logits = self.predictor.read(at.ids, at.piece.clone(), places, progress)?;
        progress.step(at.piece.len() as u64)?;
        Ok(logits)
    }

    fn nan_error(&mut self, at: &ChunkBatch<'_>, row: usize, progress: &dyn Progress) -> Error {
        let place = at.first() + row;
        let error = self.predictor.nan_error(at.chunks, at.chunk, place, progress);
        error.in_file(self.name.as_ref())
    }
}

/// The reference, which reads or has been read.
enum ReferenceReader<'r> {
    Model(ModelReader),
    Logits(&'r LogitsFile),
}

impl<'r> ReferenceReader<'r> {
    fn new(comparison: &Comparison<'r>) -> Result<Self, Error> {
        Ok(match comparison.reference {
            Reference::Model(subject) => {
                Self::Model(ModelReader::new(subject, comparison.chunks, comparison.options)?)
            }
            Reference::Logits(file) => Self::Logits(file),
        })
    }

    fn read(&mut self, at: &ChunkBatch<'_>, progress: &dyn Progress) -> Result<Value, Error> {
        match self {
            Self::Model(reader) => reader.read(at, progress),
            Self::Logits(file) => file.read(at.chunk, at.first()..at.piece.end.max(at.first())),
        }
    }

    fn scores<'v>(&self, row: &'v [f32]) -> Option<Scores<'v>> {
        match self {
            Self::Model(_) => Scores::new(row),
            Self::Logits(_) => Scores::from_log_probabilities(row),
        }
    }

    fn nan_error(&mut self, at: &ChunkBatch<'_>, row: usize, progress: &dyn Progress) -> Error {
        match self {
            Self::Model(reader) => reader.nan_error(at, row, progress),
            Self::Logits(file) => file.nan_error(at.chunk, at.first() + row),
        }
    }
}

fn miss(reference: &Scores<'_>, model: &Scores<'_>, at: &ChunkBatch<'_>, row: usize) -> Miss {
    let place = at.first() + row;
    let candidate = |id: usize| Candidate {
        id: id as u32,
        reference: reference.log_probability(id),
        model: model.log_probability(id),
    };
    Miss {
        chunk: at.chunk,
        position: place + 1,
        divergence: reference.divergence(model),
        actual: candidate(at.chunks.target(at.chunk, place) as usize),
        by_reference: candidate(reference.top()),
        by_model: candidate(model.top()),
        before: Vec::new(),
    }
}
