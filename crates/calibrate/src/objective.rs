//! The objective of one matrix: its Hessian, factorized, and the errors to compensate.

use crate::cholesky::CholeskyFactor;
use crate::hessian::Hessian;

/// Number of tokens per column at which the error correction reaches half strength. Correcting
/// accumulated errors fully would overfit a short text.
const HALF_STRENGTH_TOKENS: f32 = 16.0;

/// Quadratic objective of a matrix: the output error on the calibration set.
pub struct Objective {
    /// Damped Hessian, `n` rows of `n`.
    pub(crate) matrix: Vec<f32>,
    pub(crate) factor: CholeskyFactor,
    /// See [`Hessian::drift`].
    pub(crate) drift: Vec<f32>,
    /// Sums of `e[i] y[j]`, where `e` is the error of the output that earlier matrices cause, and `y` the input. One row per
    /// row of the matrix, or empty. Errors in `drift` are not repeated here.
    pub(crate) output_error: Vec<f32>,
    /// Strength of the error correction, for the sums over all tokens.
    pub(crate) strength: f32,
}

impl Objective {
    /// Builds the objective from a symmetrized Hessian. `damping` times the mean of the diagonal is
    /// added to the diagonal: once for many tokens, twice for as many tokens as columns. A column
    /// that is always 0 gets the mean.
    pub fn new(hessian: Hessian, damping: f32) -> Self {
        let Hessian { n, tokens, compared, mut matrix, drift } = hessian;
        let mean = (0..n).map(|i| f64::from(matrix[i * n + i])).sum::<f64>() / n.max(1) as f64;
        let mean = if mean > 0.0 { mean as f32 } else { 1.0 };
        let damping = damping * (1.0 + n as f32 / (tokens as f32).max(1.0));
        for i in 0..n {
            let diagonal = &mut matrix[i * n + i];
            *diagonal = if *diagonal > 0.0 { *diagonal + damping * mean } else { mean };
        }
        let factor = CholeskyFactor::new(&matrix, n);
        // The sums cover only the compared tokens; this scales them to all tokens.
        let strength = tokens as f32 / (compared as f32 + HALF_STRENGTH_TOKENS * n as f32);
        Self { matrix, factor, drift, output_error: Vec::new(), strength }
    }

    /// Adds sums of `e[i] y[j]` over the compared tokens, where `e` is the error of the output that earlier matrices cause, as
    /// far as the drift does not have it, and `y` the input: as many rows of `n` as the matrix has.
    pub fn with_output_error(mut self, sums: Vec<f32>) -> Self {
        self.output_error = sums;
        self
    }

    pub(crate) fn n(&self) -> usize {
        self.factor.n
    }
}
