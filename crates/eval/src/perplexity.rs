//! How well a model predicts a text.

use std::sync::Arc;

use gguf::Error;
use gguf_runtime::Executor;
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, pieces};
use crate::scores::Scores;
use crate::{LogitsWriter, Mean, RunOptions, Windows};

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

    /// More windows. Sums of the same windows that are added in the same order are the same bits.
    pub fn append(&mut self, other: &Self) {
        self.windows += other.windows;
        self.surprise.append(&other.surprise);
    }
}

/// What is done after each window: it gets what was found in it. Its error ends the work.
pub type EachWindow<'e, T> = dyn FnMut(T) -> Result<(), Error> + 'e;

/// Reads all windows. Logits go to `save`, if there is one.
///
/// # Errors
/// `result-missing` if the model has no logits, `weights-unusable` if NaN comes out, what `each` says, as
/// [`gguf_runtime::Context::run`], and if logits cannot be written.
pub fn perplexity(
    executor: &Arc<Executor>,
    windows: &Windows,
    options: RunOptions,
    save: Option<&LogitsWriter>,
    each: &mut EachWindow<'_, Perplexity>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut predictor = Predictor::new(executor, windows, options)?;
    let pieces = pieces(windows, std::slice::from_ref(executor), options);
    for window in windows.numbers() {
        let ids = windows.inputs(window);
        let mut found = Perplexity { windows: 1, ..Default::default() };
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
                let Some(surprise) = surprise else {
                    return Err(predictor.not_a_number(windows, window, first + row, progress));
                };
                found.surprise.add(surprise);
            }
            if let Some(save) = save {
                save.write(window, first, &logits)?;
            }
            progress.step(piece.len() as u64)?;
        }
        each(found)?;
    }
    Ok(())
}
