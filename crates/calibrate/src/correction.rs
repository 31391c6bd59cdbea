//! Correction of weights for the errors of earlier matrices.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::cholesky::CholeskyFactor;
use crate::hessian::Hessian;
use crate::lanes::{ROWS, lanes_of, matmul, solve_unit_lower, solve_unit_lower_transposed};

/// Number of tokens per column at which the correction reaches half strength. Correcting accumulated errors fully would
/// overfit a short text.
const HALF_STRENGTH_TOKENS: f32 = 16.0;

/// Correction of the weights of a matrix with `n` columns before they are rounded: `strength (W drift + output_error) H⁻¹` is
/// added to them, where `H` is the damped Hessian (GPTAQ).
pub struct Correction {
    factor: CholeskyFactor,
    /// See [`Hessian::drift`].
    drift: Vec<f32>,
    output_error: Vec<f32>,
    /// Strength, for the sums over all tokens.
    strength: f32,
}

impl Correction {
    /// Takes the drift out of a symmetrized Hessian. `output_error` are sums of `e[i] y[j]` over the compared tokens, where `e`
    /// is the error of the output that earlier matrices cause, as far as the drift does not have it, and `y` the input: as many
    /// rows of `n` as the matrix has, or none. `damping` is that of [`Hessian::damped_diagonal`]. Returns nothing if no error
    /// is known.
    pub fn new(hessian: &mut Hessian, output_error: Vec<f32>, damping: f32) -> Option<Self> {
        let drift = std::mem::take(&mut hessian.drift);
        if drift.is_empty() && output_error.is_empty() {
            return None;
        }
        let factor = CholeskyFactor::new(&hessian.matrix, &hessian.damped_diagonal(damping));
        // The sums cover only the compared tokens; this scales them to all tokens.
        let strength = hessian.tokens as f32
            / (hessian.compared as f32 + HALF_STRENGTH_TOKENS * hessian.n as f32);
        Some(Self { factor, drift, output_error, strength })
    }

    /// Corrects all rows of the matrix. Rows beside one with a NaN or an infinity may keep their weights. The result does not
    /// depend on the number of threads.
    pub fn correct(&self, rows: &mut [f32]) {
        let n = self.factor.n;
        let tiles = rows.par_chunks_mut((n * ROWS).max(1)).enumerate();
        tiles.filter(|(_, rows)| rows.iter().all(|x| x.is_finite())).for_each(|(number, rows)| {
            let first = (number * ROWS * n).min(self.output_error.len());
            let output_error = &self.output_error[first..];
            Arch::new().dispatch(CorrectRows { correction: self, rows, output_error });
        });
    }
}

/// Rows that one thread corrects.
struct CorrectRows<'c> {
    correction: &'c Correction,
    /// Up to [`ROWS`] rows.
    rows: &'c mut [f32],
    /// Output errors from the first of the rows on, or none.
    output_error: &'c [f32],
}

impl WithSimd for CorrectRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { correction, rows, output_error } = self;
        let CholeskyFactor { n, r, d } = &correction.factor;
        let n = *n;
        let mut b = vec![[0.0; ROWS]; n];
        if !correction.drift.is_empty() {
            matmul(simd, (&correction.drift, n), 0..n, 0..n, &lanes_of(rows, n), &mut b);
        }
        for (row, error) in output_error.chunks_exact(n).take(rows.len() / n).enumerate() {
            b.iter_mut().zip(error).for_each(|(b, error)| b[row] += error);
        }
        // Solves x Rᵀ D R = b: first u R = b, then x Rᵀ = u / D.
        solve_unit_lower(simd, r, &mut b);
        for (b, d) in b.iter_mut().zip(d) {
            let inverse = correction.strength / d;
            b.iter_mut().for_each(|b| *b *= inverse);
        }
        solve_unit_lower_transposed(simd, r, &mut b);
        for (row, weights) in rows.chunks_exact_mut(n).enumerate() {
            weights.iter_mut().zip(&b).for_each(|(w, b)| *w += b[row]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Objective;

    const N: usize = 40;

    /// Pseudo-random numbers of about 1.
    fn numbers(seed: usize, count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * i + seed) as f32 * 0.37).sin()).collect()
    }

    /// A Hessian with drift.
    fn hessian() -> Hessian {
        let (y, difference) = (numbers(1, 300 * N), numbers(7, 300 * N));
        let x: Vec<f32> = y.iter().zip(&difference).map(|(y, d)| y + 0.1 * d).collect();
        let mut hessian = Hessian::new(N, true);
        hessian.add(&y, Some(&x));
        hessian.symmetrize();
        hessian
    }

    /// `rows matrix`, with rows of [`N`].
    fn times(rows: &[f32], matrix: &[f32]) -> Vec<f32> {
        let column = |row: &[f32], j: usize| (0..N).map(|k| row[k] * matrix[k * N + j]).sum();
        rows.chunks(N).flat_map(|row| (0..N).map(move |j| column(row, j))).collect()
    }

    #[test]
    fn solves_for_the_errors() {
        // More rows than one tile has.
        let weights = numbers(3, 21 * N);
        let (drift, output_error) = (hessian().drift, numbers(5, 21 * N));
        let mut corrected = weights.clone();
        let mut known = hessian();
        let damped = Objective::new(hessian(), 0.1).matrix;
        Correction::new(&mut known, output_error.clone(), 0.1).unwrap().correct(&mut corrected);
        assert!(known.drift.is_empty());
        let change: Vec<f32> = corrected.iter().zip(&weights).map(|(new, old)| new - old).collect();
        let strength = 300.0 / (300.0 + 16.0 * N as f32);
        // `Hessian::drift` has the outputs' side in rows, so it multiplies from the left.
        let mut transposed = vec![0.0; N * N];
        (0..N * N).for_each(|i| transposed[i % N * N + i / N] = drift[i]);
        let errors = times(&weights, &transposed);
        for (i, found) in times(&change, &damped).iter().enumerate() {
            let desired = strength * (errors[i] + output_error[i]);
            // Sums of 40 products of about 3, in single precision.
            assert!((found - desired).abs() < 1e-3, "{i}: {found} {desired}");
        }
    }

    #[test]
    fn nothing_is_corrected_without_errors() {
        let mut known = Hessian { drift: Vec::new(), ..hessian() };
        assert!(Correction::new(&mut known, Vec::new(), 0.1).is_none());
    }

    #[test]
    fn rows_with_nan_are_left_to_the_encoder() {
        let mut weights = numbers(3, 20 * N);
        weights[5] = f32::NAN;
        let before = weights.clone();
        Correction::new(&mut hessian(), Vec::new(), 0.1).unwrap().correct(&mut weights);
        assert!(weights[5].is_nan() && weights[..5] == before[..5]);
        assert!(weights[16 * N..] != before[16 * N..]);
    }
}
