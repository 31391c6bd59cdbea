//! Effects of many variants from few runs, in each of which a random half of all variants is in place.
//!
//! Small changes of logits add up, so a run k changes the predictions by the sum of the changes e(t) of its variants t. Half
//! of the squared length of a change, weighted by the probabilities, is its KL divergence to second order. Changes by
//! different tensors are nearly orthogonal, so the scalar product of the changes of two runs is twice the sum of the divergences of the
//! variants that both have. All pairs of runs are far more equations than there are variants, and are solved by
//! least squares.

use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_runtime::Executor;
use gguf_store::Progress;
use rayon::prelude::*;

use super::Variant;
use crate::predictor::{Predictor, batches, require_logits};
use crate::scores::Scores;
use crate::{Chunks, RunOptions, Subject};

/// Maximum size of all changes in bytes.
const MAX_BYTES: usize = 256 << 20;

/// Number of tokens with the highest probabilities, whose changes are compared at each position, if they fit into memory.
const TOP: usize = 256;

/// Sweeps of coordinate descent, which then changes nothing any more.
const SWEEPS: usize = 2000;

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
            executor = Arc::new(executor.with_tensor(tensor.name, tensor.ty, bytes)?);
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
    let mut design = vec![vec![false; variants]; runs];
    for variant in 0..variants {
        let mut order: Vec<usize> = (0..runs).collect();
        for last in (1..runs).rev() {
            order.swap(last, below(last + 1));
        }
        for run in &order[..runs / 2] {
            design[*run][variant] = true;
        }
    }
    design
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// Predictions of the model: at each evaluated position some tokens with their log-probabilities.
struct Reference {
    top: usize,
    ids: Vec<u32>,
    logs: Vec<f32>,
}

impl Reference {
    fn read(
        model: &Subject,
        chunks: &Chunks,
        top: usize,
        options: RunOptions,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let most_likely = |scores: &Scores<'_>, width: usize| {
            let mut ids: Vec<u32> = (0..width as u32).collect();
            let by_score = |a: &u32, b: &u32| {
                let [a, b] = [a, b].map(|id| scores.log_probability(*id as usize));
                b.total_cmp(&a)
            };
            if top < width {
                ids.select_nth_unstable_by(top, by_score);
                ids.truncate(top);
            }
            let logs = ids.iter().map(|id| scores.log_probability(*id as usize) as f32).collect();
            (ids, logs)
        };
        let rows = read(&model.executor, chunks, options, progress, &most_likely)?;
        let top = rows.first().map_or(0, |(ids, _): &(Vec<u32>, Vec<f32>)| ids.len());
        let (ids, logs): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        Ok(Self { top, ids: ids.concat(), logs: logs.concat() })
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
        let all = |scores: &Scores<'_>, width: usize| -> Vec<f32> {
            (0..width).map(|id| scores.log_probability(id) as f32).collect()
        };
        let mut changes = Vec::with_capacity(self.logs.len());
        let (ids, logs) = (self.ids.chunks_exact(self.top), self.logs.chunks_exact(self.top));
        let mut positions = ids.zip(logs);
        let mut each = |row: Vec<f32>| {
            let Some((ids, logs)) = positions.next() else { return };
            let changed = ids.iter().zip(logs).map(|(id, log)| row[*id as usize] - log);
            let changed: Vec<f32> = changed.collect();
            let weights: Vec<f32> = logs.iter().map(|log| log.exp()).collect();
            let sum: f32 = weights.iter().sum();
            let mean: f32 =
                weights.iter().zip(&changed).map(|(w, x)| w * x).sum::<f32>() / sum.max(1e-9);
            changes.extend(weights.iter().zip(&changed).map(|(w, x)| w.sqrt() * (x - mean)));
        };
        read_each(executor, chunks, options, progress, &all, &mut each)?;
        Ok(changes)
    }
}

/// Returns something of the scores of each evaluated position.
fn read<T: Send>(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
    of_row: &(dyn Fn(&Scores<'_>, usize) -> T + Sync),
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    read_each(executor, chunks, options, progress, of_row, &mut |one| all.push(one))?;
    Ok(all)
}

/// Passes something of the scores of each evaluated position to `each`, in order.
fn read_each<T: Send>(
    executor: &Arc<Executor>,
    chunks: &Chunks,
    options: RunOptions,
    progress: &dyn Progress,
    of_row: &(dyn Fn(&Scores<'_>, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) -> Result<(), Error> {
    let mut predictor = Predictor::new(executor, chunks, options)?;
    let batches = batches(chunks, std::slice::from_ref(executor), options);
    for chunk in chunks.numbers() {
        let ids = chunks.inputs(chunk);
        for piece in &batches {
            let logits = predictor.read(&ids, piece.clone(), chunks.positions(), progress)?;
            let of_row = |row: usize| {
                let row = logits.row(row);
                Some(of_row(&Scores::new(row)?, row.len()))
            };
            let rows: Vec<Option<T>> = (0..logits.rows).into_par_iter().map(of_row).collect();
            for (number, row) in rows.into_iter().enumerate() {
                let position = piece.start.max(chunks.positions().start) + number;
                match row {
                    Some(row) => each(row),
                    None => return Err(predictor.nan_error(chunks, chunk, position, progress)),
                }
            }
            progress.step(piece.len() as u64)?;
        }
    }
    Ok(())
}

/// Returns the effects x, not negative, that minimize the squared differences of the product of each pair of runs from a
/// constant plus the sum of the effects that both have.
fn solve(design: &[Vec<bool>], products: &[Vec<f64>]) -> Vec<f64> {
    let (runs, variants) = (design.len(), design.first().map_or(0, Vec::len));
    let has = |run: usize, variant: usize| variant == variants || design[run][variant];
    // Runs that both variants have; the last one is the constant, which all runs have.
    let both = |a: usize, b: usize| (0..runs).filter(|run| has(*run, a) && has(*run, b)).count();
    let normal: Vec<Vec<f64>> = (0..=variants)
        .map(|a| (0..=variants).map(|b| (both(a, b) as f64).powi(2)).collect())
        .collect();
    let right: Vec<f64> = (0..=variants)
        .map(|variant| {
            let runs: Vec<usize> = (0..runs).filter(|run| has(*run, variant)).collect();
            runs.iter().flat_map(|a| runs.iter().map(|b| products[*a][*b])).sum()
        })
        .collect();
    let mut effects = vec![0.0f64; variants + 1];
    for _ in 0..SWEEPS {
        for (place, (row, right)) in normal.iter().zip(&right).enumerate() {
            let others: f64 = row.iter().zip(&effects).map(|(x, effect)| x * effect).sum();
            let rest = right - (others - row[place] * effects[place]);
            let effect = rest / row[place].max(1.0);
            effects[place] = if place < variants { effect.max(0.0) } else { effect };
        }
    }
    effects.truncate(variants);
    effects
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
            assert!((found - expected).abs() < 1.0, "{found} {expected}");
        }
    }
}
