//! Distance of a calibrated model from the original, on chunks of text.

use std::ops::Range;
use std::sync::Arc;

use gguf::Error;
use gguf_eval::{Chunks, RunOptions, Subject, divergence};
use gguf_graph::OutputKind;
use gguf_runtime::{Batch, CacheType, Context, ContextOptions, Executor, Value};
use gguf_store::Progress;

/// Measure of the distance between two models.
#[derive(Clone, Copy)]
pub(super) enum Metric {
    /// KL divergence of the predictions.
    Divergence,
    /// Cosine distance of embeddings: pooled, or of each token.
    Cosine(OutputKind),
}

impl Metric {
    /// Returns the metric for the outputs of a model; `None` without comparable outputs.
    pub fn for_model(executor: &Executor) -> Option<Self> {
        let has = |kind: &OutputKind| executor.width(*kind).is_some();
        if has(&OutputKind::Logits) {
            return Some(Self::Divergence);
        }
        [OutputKind::Pooled, OutputKind::Hidden].into_iter().find(has).map(Self::Cosine)
    }

    /// Returns the name of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Divergence => "KL divergence from the original",
            Self::Cosine(_) => "cosine distance from the original",
        }
    }

    /// Returns the number of tokens that a measurement of `count` chunks computes.
    pub fn tokens(self, chunks: &Chunks, count: usize) -> u64 {
        let per_chunk = match self {
            Self::Divergence => chunks.chunk_len() - 1,
            Self::Cosine(_) => chunks.chunk_len(),
        };
        (2 * count * per_chunk) as u64
    }

    /// Returns the mean distance of `model` from `original` on the chunks with the given numbers.
    pub fn measure(
        self,
        original: &Arc<Executor>,
        model: &Arc<Executor>,
        chunks: &Chunks,
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
                let chunks = chunks.clone().only(numbers);
                let (models, options) = (std::slice::from_ref(&model), RunOptions::default());
                let found = divergence(&original, models, &chunks, options, progress)?;
                Ok(found[0].divergence.value())
            }
            Self::Cosine(kind) => {
                let tokens = chunks.chunk_len();
                let cache_type = CacheType::F32;
                let options =
                    ContextOptions { tokens, batch: tokens, cache_type, ..Default::default() };
                let run = |executor: &Arc<Executor>, number: usize| {
                    let mut context = Context::new(executor.clone(), options)?;
                    let output = context.run_finite(
                        &Batch::all_outputs(&chunks.inputs(number)),
                        kind,
                        progress,
                    )?;
                    progress.step(tokens as u64)?;
                    Ok::<Value, Error>(output)
                };
                let (mut sum, mut rows) = (0.0, 0);
                for number in numbers {
                    let (expected, found) = (run(original, number)?, run(model, number)?);
                    rows += expected.rows;
                    sum += (0..expected.rows)
                        .map(|row| 1.0 - cosine(expected.row(row), found.row(row)))
                        .sum::<f64>();
                }
                Ok(sum / rows.max(1) as f64)
            }
        }
    }
}

/// Returns the cosine similarity; 0 if a vector is 0.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
}
