//! How far a calibrated model is from the original.

use std::ops::Range;
use std::sync::Arc;

use gguf_eval::{RunOptions, Subject, Windows, divergence};
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Value};
use gguf_store::Progress;

use crate::Error;

/// What models are compared by.
#[derive(Clone, Copy)]
pub(super) enum By {
    /// What they predict.
    Divergence,
    /// The vectors that they make: one of a text, or one of each token.
    Cosine(OutputKind),
}

impl By {
    /// What a model makes; `None` if it makes nothing that could be compared.
    pub fn of(executor: &Executor) -> Option<Self> {
        let makes = |kind: &OutputKind| executor.width(*kind).is_some();
        if makes(&OutputKind::Logits) {
            return Some(Self::Divergence);
        }
        [OutputKind::Pooled, OutputKind::Hidden].into_iter().find(makes).map(Self::Cosine)
    }

    /// What the numbers are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Divergence => "divergence from the original",
            Self::Cosine(_) => "1 less the cosine to what the original makes",
        }
    }

    /// How many tokens are computed for so many windows.
    pub fn tokens(self, windows: &Windows, count: usize) -> u64 {
        let of_window = match self {
            Self::Divergence => windows.window_len() - 1,
            Self::Cosine(_) => windows.window_len(),
        };
        (2 * count * of_window) as u64
    }

    /// How far a model is from the original in some windows.
    pub fn apart(
        self,
        original: &Arc<Executor>,
        model: &Arc<Executor>,
        windows: &Windows,
        numbers: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<f64, Error> {
        match self {
            Self::Divergence => {
                let subject = |name: &str, executor: &Arc<Executor>| Subject {
                    name: name.to_owned(),
                    executor: executor.clone(),
                };
                let (original, model) =
                    (subject("the original", original), subject("the output", model));
                let windows = windows.clone().only(numbers);
                let (models, how) = (std::slice::from_ref(&model), RunOptions::default());
                let found = divergence(&original, models, &windows, how, progress)?;
                Ok(found[0].divergence.value())
            }
            Self::Cosine(kind) => {
                let tokens = windows.window_len();
                let cache_type = CacheType::F32;
                let options =
                    ContextOptions { tokens, batch: tokens, cache_type, ..Default::default() };
                let make = |executor: &Arc<Executor>, number: usize| {
                    let mut context = Context::new(executor.clone(), options)?;
                    let made =
                        context.run(&Batch::of_all(&windows.inputs(number)), kind, progress)?;
                    progress.step(tokens as u64)?;
                    Ok::<Value, Error>(made)
                };
                let (mut sum, mut rows) = (0.0, 0);
                for number in numbers {
                    let (wanted, there) = (make(original, number)?, make(model, number)?);
                    rows += wanted.rows;
                    sum += (0..wanted.rows)
                        .map(|row| 1.0 - cosine(wanted.row(row), there.row(row)))
                        .sum::<f64>();
                }
                Ok(sum / rows.max(1) as f64)
            }
        }
    }
}

/// Of zeros it is 0.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    product(a, b) / (product(a, a) * product(b, b)).sqrt().max(f64::MIN_POSITIVE)
}
