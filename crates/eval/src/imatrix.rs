//! Importance matrices: what enters each product while a model reads a text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gguf::Error;
use gguf_graph::OutputKind;
use gguf_quantize::imatrix::{Entry, Imatrix};
use gguf_runtime::{Executor, Observer, Value};
use gguf_store::Progress;
use rayon::prelude::*;

use crate::predictor::{Predictor, cut};
use crate::{RunOptions, Windows};

/// What of a text is read, and what is summed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// What the text is called in the file.
    pub dataset: String,
    /// Windows to leave out at the beginning.
    pub skip: usize,
    /// Whether `output.weight` is summed too, beside the matrices of blocks.
    pub output: bool,
}

/// Sums of squares of one tensor.
struct Sums {
    /// Per column, expert after expert.
    squares: Vec<f64>,
    /// Rows, one number per expert or one for all.
    counts: Vec<u64>,
}

/// Columns that one thread sums.
const COLUMNS: usize = 256;

struct Collector {
    output: bool,
    sums: Mutex<BTreeMap<String, Sums>>,
}

impl Observer for Collector {
    fn product(&self, tensor: &str, expert: Option<(usize, usize)>, x: &Value) {
        if !(tensor.starts_with("blk.") || self.output && tensor == "output.weight") {
            return;
        }
        let (number, experts) = expert.unwrap_or((0, 1));
        let mut all = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = all.entry(tensor.to_owned()).or_insert_with(|| Sums {
            squares: vec![0.0; experts * x.width],
            counts: vec![0; experts],
        });
        // A tensor that is used in two ways counts in the first.
        if (sums.squares.len(), sums.counts.len()) != (experts * x.width, experts) {
            return;
        }
        sums.counts[number] += x.rows as u64;
        let squares = &mut sums.squares[number * x.width..][..x.width];
        squares.par_chunks_mut(COLUMNS).enumerate().for_each(|(chunk, squares)| {
            for row in 0..x.rows {
                let x = &x.row(row)[chunk * COLUMNS..][..squares.len()];
                for (square, x) in squares.iter_mut().zip(x) {
                    *square += f64::from(*x) * f64::from(*x);
                }
            }
        });
    }
}

/// What is done after each window: it gets the number of windows that were read so far, and the sums if it
/// asks for them. Its error ends the work.
pub type Each<'e> = dyn FnMut(usize, &dyn Fn() -> Imatrix) -> Result<(), Error> + 'e;

/// Reads windows, every token of each, and sums the squares of what enters each product.
///
/// # Errors
/// `text-too-short` if no window is left, `weights-unusable` if NaN enters a product, what `each` says,
/// and as [`gguf_runtime::Context::run`].
pub fn imatrix(
    executor: &Arc<Executor>,
    windows: &Windows,
    options: RunOptions,
    collection: &Collection,
    each: &mut Each<'_>,
    progress: &dyn Progress,
) -> Result<Imatrix, Error> {
    if collection.skip >= windows.count() {
        let what =
            format!("the text has {} windows, {} are left out", windows.count(), collection.skip);
        return Err(Error::request("text-too-short", what, "take a longer text"));
    }
    // Logits cost the most, and are not asked for.
    let kind = match executor.width(OutputKind::Hidden) {
        Some(_) if !collection.output => OutputKind::Hidden,
        _ => OutputKind::Logits,
    };
    let mut predictor = Predictor::new(executor, windows, options)?;
    let collector = Collector { output: collection.output, sums: Mutex::default() };
    let len = windows.window_len();
    let pieces = cut(len, std::slice::from_ref(executor), options);
    for window in collection.skip..windows.count() {
        let ids = windows.inputs(window);
        for piece in &pieces {
            predictor.observe(&ids, piece.clone(), kind, &collector, progress)?;
            progress.step(piece.len() as u64)?;
        }
        collector.check(window)?;
        let read = window + 1 - collection.skip;
        each(read, &|| collector.imatrix(&collection.dataset, len, read))?;
    }
    Ok(collector.imatrix(&collection.dataset, len, windows.count() - collection.skip))
}

impl Collector {
    /// That all sums are numbers.
    fn check(&self, window: usize) -> Result<(), Error> {
        let all = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        for (tensor, sums) in &*all {
            if let Some(column) = sums.squares.iter().position(|sum| !(*sum as f32).is_finite()) {
                let what = format!(
                    "what is multiplied with column {column} is no number in window {}, or too large",
                    window + 1
                );
                return Err(Error::weights(tensor, what));
            }
        }
        Ok(())
    }

    fn imatrix(&self, dataset: &str, len: usize, windows: usize) -> Imatrix {
        let all = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = |(name, sums): (&String, &Sums)| {
            let squares = sums.squares.iter().map(|sum| *sum as f32).collect();
            (name.clone(), Entry { sums: squares, counts: sums.counts.clone() })
        };
        Imatrix {
            datasets: vec![dataset.to_owned()],
            chunk_count: windows as u32,
            chunk_size: Some(len as u32),
            entries: all.iter().map(entry).collect(),
        }
    }
}
