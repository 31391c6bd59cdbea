//! Perplexity of a model.

use std::sync::Arc;

use gguf::Error;
use gguf_runtime::{Executor, Value};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, batches, require_logits};
use crate::scores::Scores;
use crate::{Chunks, LogitsWriter, Mean, RunOptions};

/// The perplexity of chunks: `exp` of the mean of `-ln p`, with the probability p that the model gave
/// to each token that actual.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Perplexity {
    /// Chunks that were read.
    pub chunks: usize,
    /// Mean negative log-likelihood.
    pub surprise: Mean,
}

impl Perplexity {
    /// Returns the perplexity.
    pub fn value(&self) -> f64 {
        libm::exp(self.surprise.value())
    }

    /// Returns the standard error for independent tokens.
    pub fn error(&self) -> f64 {
        self.value() * self.surprise.error()
    }

    /// Adds chunks. The result is bit-identical for the same chunks in the same order.
    pub fn append(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.surprise.append(&other.surprise);
    }

    /// Adds the logits of positions from `first` on, as far as they are evaluated. If logits are NaN or infinite, the
    /// error is their position.
    pub(crate) fn add_logits(
        &mut self,
        chunks: &Chunks,
        chunk: usize,
        first: usize,
        logits: &Value,
    ) -> Result<(), usize> {
        let evaluated = |row: &usize| chunks.positions().contains(&(first + row));
        let rows: Vec<usize> = (0..logits.rows).filter(evaluated).collect();
        let surprise = |row: &usize| {
            let target = chunks.target(chunk, first + row) as usize;
            Some(-Scores::new(logits.row(*row))?.log_probability(target))
        };
        let surprises: Vec<Option<f64>> = rows.par_iter().map(surprise).collect();
        for (row, surprise) in rows.into_iter().zip(surprises) {
            self.surprise.add(surprise.ok_or(first + row)?);
        }
        Ok(())
    }
}

/// Receives the result of each chunk. An error stops the work.
pub type OnChunk<'e, T> = dyn FnMut(T) -> Result<(), Error> + 'e;

/// Evaluates all chunks, and writes the logits to `save`, if given.
///
/// # Errors
/// `result-missing` if the model has no logits; `tensor-shape` if it lacks those of a token; `weights-unusable` if logits are NaN or infinite; errors of `each`; as
/// [`gguf_runtime::Context::run`]; if logits cannot be written.
pub fn perplexity(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    save: Option<&LogitsWriter>,
    each: &mut OnChunk<'_, Perplexity>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    require_logits(executor, chunks.largest_id())?;
    let mut predictor = Predictor::new(executor, chunks, options)?;
    let batches = batches(chunks, std::slice::from_ref(executor), options);
    for chunk in chunks.numbers() {
        let ids = chunks.inputs(chunk);
        let mut found = Perplexity { chunks: 1, ..Default::default() };
        for piece in &batches {
            let logits = predictor.read(&ids, piece.clone(), chunks.positions(), progress)?;
            let first = piece.start.max(chunks.positions().start);
            if let Err(position) = found.add_logits(chunks, chunk, first, &logits) {
                return Err(predictor.nan_error(chunks, chunk, position, progress));
            }
            if let Some(save) = save {
                save.write(chunk, first, &logits)?;
            }
            progress.step(piece.len() as u64)?;
        }
        each(found)?;
    }
    Ok(())
}
