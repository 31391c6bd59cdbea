//! Importance matrices: what enters each product while a model reads a text.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_runtime::{Executor, Observer, Value};
use gguf_store::Progress;

use crate::predictor::{Predictor, cut};
use crate::sums::Sums;
use crate::{Importance, RunOptions, Windows};

/// What of a text is read, and what is summed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// What the text is called in the file.
    pub dataset: String,
    /// Whether `output.weight` is summed too, beside the matrices of blocks.
    pub output: bool,
}

struct Collector {
    output: bool,
    sums: Mutex<Sums>,
}

impl Observer for Collector {
    fn product(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if tensor.starts_with("blk.") || self.output && tensor == "output.weight" {
            self.sums().add(tensor, expert.unwrap_or((0, 1)), x);
        }
    }
}

impl Collector {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is done after each window: it gets the number of windows that were read so far, and what was
/// collected if it asks for that. Its error ends the work.
pub type Each<'e> = dyn FnMut(usize, &dyn Fn() -> Importance) -> Result<(), Error> + 'e;

/// Reads windows, every token of each, and sums the squares of what enters each product, beside those that
/// were collected before.
///
/// # Errors
/// `weights-unusable` if NaN enters a product, what `each` says, and as [`gguf_runtime::Context::run`].
pub fn imatrix(
    executor: &Arc<Executor>,
    windows: &Windows,
    options: RunOptions,
    collection: &Collection,
    before: Importance,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Importance, Error> {
    // Logits cost the most, and are not asked for.
    let kind = match executor.width(OutputKind::Hidden) {
        Some(_) if !collection.output => OutputKind::Hidden,
        _ => OutputKind::Logits,
    };
    let mut predictor = Predictor::new(executor, windows, options)?;
    let collector = Collector { output: collection.output, sums: Mutex::new(before.sums) };
    let len = windows.window_len();
    let pieces = cut(len, std::slice::from_ref(executor), options);
    let collected = |read: usize| Importance {
        dataset: collection.dataset.clone(),
        len,
        windows: before.windows + read,
        sums: collector.sums().clone(),
    };
    let mut read = 0;
    for window in windows.numbers() {
        let ids = windows.inputs(window);
        for piece in &pieces {
            predictor.observe(&ids, piece.clone(), kind, &collector, progress)?;
            progress.step(piece.len() as u64)?;
        }
        if let Some((tensor, column)) = collector.sums().fault() {
            let number = window + 1;
            let mut what = format!(
                "what is multiplied with column {column} is no number in window {number}, or too large"
            );
            if let Some(found) = predictor.origin(&ids, kind, progress)? {
                what.push_str(&format!("; it begins {}", found.what));
            }
            return Err(Error::weights(tensor, what));
        }
        read += 1;
        each(read, &|| collected(read))?;
    }
    Ok(collected(read))
}
