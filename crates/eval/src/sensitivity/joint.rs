//! Effects of many variants from few runs, in each of which a random half of all variants is in place.
//!
//! Small changes of logits add up, so a run k changes the predictions by the sum of the changes e(t) of its variants t. Half
//! of the squared length of a change, weighted by the probabilities, is its KL divergence to second order. Changes by
//! different tensors are nearly orthogonal, so the scalar product of the changes of two runs is twice the sum of the divergences of the
//! variants that both have. So the products of all pairs of runs are a sample covariance, and the divergences its variance components.

use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_runtime::Executor;
use gguf_store::Progress;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

use super::Variant;
use crate::predictor::{Predictor, batches, require_logits};
use crate::scores::Scores;
use crate::{Chunks, RunOptions, Subject};

/// Maximum size of all changes in bytes.
const MAX_BYTES: usize = 256 << 20;

/// Number of tokens with the highest probabilities, whose changes are compared at each position, if they fit into memory.
const TOP: usize = 256;

/// Updates of the variance components. More change the order of effects by little.
const UPDATES: usize = 300;

/// Estimates the KL divergence that each variant alone causes, from a number of runs.
///
/// # Errors
/// As [`super::divergence_of_variants`].
pub(super) fn estimate(
    model: &Subject,
    variants: &[Variant<'_>],
    runs: usize,
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
) -> Result<Vec<f64>, Error> {
    require_logits(&model.executor, chunks.largest_id())?;
    let encoded: Vec<Encoded<'_>> = variants
        .iter()
        .flatten()
        .map(|(item, ty)| {
            let bytes = item.encoded(*ty, progress)?;
            Ok(Encoded { name: &item.tensor.name, ty: *ty, bytes })
        })
        .collect::<Result<_, Error>>()?;
    let mut rest = &encoded[..];
    let mut by_variant = Vec::new();
    for variant in variants {
        let (of_variant, others) = rest.split_at(variant.len());
        by_variant.push(of_variant);
        rest = others;
    }
    let design = design(variants.len(), runs);
    let top = MAX_BYTES / (4 * chunks.predicted().max(1) * (runs + 2));
    let reference = Reference::read(model, chunks, top.clamp(16, TOP), options, progress)?;
    let mut changes = Vec::with_capacity(runs);
    for present in &design {
        let mut executor = model.executor.clone();
        let present = by_variant.iter().zip(present).filter(|(_, present)| **present);
        for tensor in present.flat_map(|(tensors, _)| *tensors) {
            let bytes = tensor.bytes.clone();
            executor = Arc::new(executor.with_tensor(tensor.name, tensor.ty, bytes.into())?);
        }
        changes.push(reference.change(&executor, chunks, options, progress)?);
    }
    let products: Vec<Vec<f64>> = changes
        .par_iter()
        .map(|a| changes.iter().map(|b| product(a, b) / (2 * chunks.predicted()) as f64).collect())
        .collect();
    Ok(solve(&design, &products))
}

/// A tensor in another type.
struct Encoded<'v> {
    name: &'v str,
    ty: TensorType,
    bytes: Vec<u8>,
}

/// Returns for each run which variants it has: each variant is in half of the runs.
fn design(variants: usize, runs: usize) -> Vec<Vec<bool>> {
    let mut state = 88_172_645_463_325_252u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % n
    };
    let mut design = vec![Vec::with_capacity(variants); runs];
    for _ in 0..variants {
        let mut present: Vec<bool> = (0..runs).map(|run| run < runs / 2).collect();
        for last in (1..runs).rev() {
            present.swap(last, below(last + 1));
        }
        design.iter_mut().zip(present).for_each(|(run, present)| run.push(present));
    }
    design
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// Predictions of the model: at each evaluated position some tokens, and their log-probabilities.
struct Reference(Vec<(Vec<u32>, Vec<f32>)>);

impl Reference {
    fn read(
        model: &Subject,
        chunks: &Chunks,
        top: usize,
        options: RunOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let most_likely = |_: usize, scores: &Scores<'_>| {
            let mut ids: Vec<u32> = (0..scores.width() as u32).collect();
            let by_score = |a: &u32, b: &u32| {
                let [a, b] = [a, b].map(|id| scores.log_probability(*id as usize));
                b.total_cmp(&a)
            };
            if top < ids.len() {
                ids.select_nth_unstable_by(top, by_score);
                ids.truncate(top);
            }
            let logs = log_probabilities(scores, &ids);
            (ids, logs)
        };
        read(&model.executor, chunks, options, progress, &most_likely).map(Self)
    }

    /// Returns how another model changes the log-probabilities: the difference from its mean at each position, multiplied
    /// by the square root of the probability.
    fn change(
        &self,
        executor: &Arc<Executor>,
        chunks: &Chunks,
        options: RunOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<f32>, Error> {
        let of_position = |number: usize, scores: &Scores<'_>| -> Vec<f32> {
            let (ids, logs) = &self.0[number];
            let changed: Vec<f32> = log_probabilities(scores, ids)
                .iter()
                .zip(logs)
                .map(|(new, log)| new - log)
                .collect();
            let weights: Vec<f32> = logs.iter().map(|log| log.exp()).collect();
            let sum: f32 = weights.iter().sum();
            let mean: f32 =
                weights.iter().zip(&changed).map(|(w, x)| w * x).sum::<f32>() / sum.max(1e-9);
            weights.iter().zip(&changed).map(|(w, x)| w.sqrt() * (x - mean)).collect()
        };
        Ok(read(executor, chunks, options, progress, &of_position)?.concat())
    }
}

fn log_probabilities(scores: &Scores<'_>, ids: &[u32]) -> Vec<f32> {
    ids.iter().map(|id| scores.log_probability(*id as usize) as f32).collect()
}

/// Returns something of the scores of each evaluated position, given the number of the position among all.
fn read<T: Send>(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
    of_position: &(dyn Fn(usize, &Scores<'_>) -> T + Sync),
) -> Result<Vec<T>, Error> {
    let mut predictor = Predictor::new(executor, chunks, options)?;
    let batches = batches(chunks, std::slice::from_ref(executor), options);
    let mut all = Vec::with_capacity(chunks.predicted());
    for chunk in chunks.numbers() {
        let ids = chunks.inputs(chunk);
        for piece in &batches {
            let logits = predictor.read(&ids, piece.clone(), chunks.positions(), progress)?;
            let first = all.len();
            let of_row =
                |row: usize| Some(of_position(first + row, &Scores::new(logits.row(row))?));
            let rows: Vec<Option<T>> = (0..logits.rows).into_par_iter().map(of_row).collect();
            for (number, row) in rows.into_iter().enumerate() {
                let position = piece.start.max(chunks.positions().start) + number;
                match row {
                    Some(row) => all.push(row),
                    None => return Err(predictor.nan_error(chunks, chunk, position, progress)),
                }
            }
            progress.step(piece.len() as u64)?;
        }
    }
    Ok(all)
}

/// Returns the variances of independent normal changes, one per variant and one that all runs have, under which the products
/// of the changes of runs are most likely: maximum likelihood of variance components, by multiplicative updates,
/// which never decrease the likelihood and keep variances positive.
fn solve(design: &[Vec<bool>], products: &[Vec<f64>]) -> Vec<f64> {
    let (runs, variants) = (design.len(), design.first().map_or(0, Vec::len));
    let has = |run: usize, variant: usize| variant == variants || design[run][variant];
    let design = DMatrix::from_fn(runs, variants + 1, |run, variant| f64::from(has(run, variant)));
    let products = DMatrix::from_fn(runs, runs, |a, b| products[a][b]);
    let mean = products.trace() / (runs * variants).max(1) as f64;
    let mut effects = DVector::from_element(variants + 1, mean);
    for _ in 0..UPDATES {
        let mut weighted = design.clone();
        for (mut column, effect) in weighted.column_iter_mut().zip(&effects) {
            column *= *effect;
        }
        let mut covariance = &weighted * design.transpose();
        for run in 0..runs {
            covariance[(run, run)] += 1e-9 * mean;
        }
        // Without any change there is nothing to explain.
        let Some(factor) = covariance.cholesky() else { break };
        let solved = factor.solve(&design);
        let explained = &products * &solved;
        for (variant, effect) in effects.iter_mut().enumerate() {
            let found = solved.column(variant).dot(&explained.column(variant));
            let expected = design.column(variant).dot(&solved.column(variant));
            *effect *= (found / expected).max(0.0).sqrt();
        }
    }
    effects.iter().take(variants).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variant_is_in_half_of_the_runs() {
        let design = design(100, 32);
        for variant in 0..100 {
            assert_eq!(design.iter().filter(|run| run[variant]).count(), 16);
        }
        assert!(design.iter().all(|run| (30..70).contains(&run.iter().filter(|x| **x).count())));
    }

    #[test]
    fn orthogonal_effects_are_found() {
        let design = design(60, 24);
        let expected: Vec<f64> = (0..60).map(|i| ((i * 37 % 60) as f64).powi(2)).collect();
        let both = |a: &[bool], b: &[bool]| -> f64 {
            expected
                .iter()
                .zip(a.iter().zip(b))
                .map(|(x, (a, b))| if *a && *b { *x } else { 0.0 })
                .sum()
        };
        let products: Vec<Vec<f64>> =
            design.iter().map(|a| design.iter().map(|b| 7.0 + both(a, b)).collect()).collect();
        for (found, expected) in solve(&design, &products).iter().zip(&expected) {
            assert!((found - expected).abs() < 0.05 * expected + 40.0, "{found} {expected}");
        }
    }
}
