//! The objective of one matrix: its Hessian, damped and factorized.

use crate::cholesky::CholeskyFactor;
use crate::hessian::Hessian;

/// Quadratic objective of a matrix: the output error on the calibration set.
pub struct Objective {
    /// Damped Hessian, `n` rows of `n`.
    pub(crate) matrix: Vec<f32>,
    pub(crate) factor: CholeskyFactor,
}

impl Objective {
    /// Builds the objective from a symmetrized Hessian. `damping` is that of [`Hessian::damped_diagonal`].
    pub fn new(hessian: Hessian, damping: f32) -> Self {
        let diagonal = hessian.damped_diagonal(damping);
        let Hessian { n, mut matrix, .. } = hessian;
        let factor = CholeskyFactor::new(&matrix, &diagonal);
        matrix.iter_mut().step_by(n + 1).zip(diagonal).for_each(|(to, from)| *to = from);
        Self { matrix, factor }
    }

    pub(crate) fn n(&self) -> usize {
        self.factor.n
    }
}
