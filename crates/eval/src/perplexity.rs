//! How well a model predicts a text.

use std::sync::Arc;

use gguf::Error;
use gguf_runtime::Executor;
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, not_a_number, pieces};
use crate::scores::Scores;
use crate::{Mean, RunOptions, Windows};

/// The perplexity of windows: `exp` of the mean of `-ln p`, with the probability p that the model gave
/// to each token that came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Perplexity {
    /// Windows that were read.
    pub windows: usize,
    /// The mean of `-ln p`.
    pub surprise: Mean,
}

impl Perplexity {
    /// The perplexity: 1 or more.
    pub fn value(&self) -> f64 {
        self.surprise.value().exp()
    }

    /// Its standard error, as if tokens did not depend on each other.
    pub fn error(&self) -> f64 {
        self.value() * self.surprise.error()
    }
}

/// Reads all windows. `each` gets what is known after each of them.
///
/// # Errors
/// `result-missing` if the model has no logits, `weights-unusable` if NaN comes out, and as
/// [`gguf_runtime::Context::run`].
pub fn perplexity(
    executor: &Arc<Executor>,
    windows: &Windows,
    options: RunOptions,
    each: &mut dyn FnMut(&Perplexity),
    progress: &dyn Progress,
) -> Result<Perplexity, Error> {
    let mut predictor = Predictor::new(executor, windows, options)?;
    let pieces = pieces(windows, std::slice::from_ref(executor), options);
    let mut found = Perplexity::default();
    for window in 0..windows.count() {
        let ids = windows.inputs(window);
        for piece in &pieces {
            let logits = predictor.read(&ids, piece.clone(), windows.places(), progress)?;
            let first = piece.start.max(windows.places().start);
            let surprises: Vec<Option<f64>> = (0..logits.rows)
                .into_par_iter()
                .map(|row| {
                    let target = windows.target(window, first + row) as usize;
                    Some(-Scores::new(logits.row(row))?.log_probability(target))
                })
                .collect();
            for (row, surprise) in surprises.into_iter().enumerate() {
                found.surprise.add(surprise.ok_or_else(|| not_a_number(window, first + row))?);
            }
            progress.step(piece.len() as u64)?;
        }
        found.windows += 1;
        each(&found);
    }
    Ok(found)
}
