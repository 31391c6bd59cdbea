//! Sinkhorn normalization.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope, not_negative, require};
use crate::tensor::Shape;

/// Maximum number of iterations: more than any matrix takes to converge.
const MAX_ITERATIONS: u32 = 1000;

/// Normalizes square matrices to be doubly stochastic (Sinkhorn and Knopp).
///
/// A row of `n n` elements is a matrix of `n` rows. First comes the softmax of each of its rows, plus
/// `epsilon`; then each column is divided by its sum plus `epsilon`; then, `iterations - 1` times, each row is
/// divided by its sum plus `epsilon`, and each column again.
///
/// - Inputs: `x` `[rows, n n]`.
/// - Output: `[rows, n n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sinkhorn {
    /// Logits of the matrices.
    pub x: ValueId,
    /// Number of column normalizations.
    pub iterations: u32,
    /// Added to probabilities and to divisors.
    pub epsilon: f32,
}

impl Operation for Sinkhorn {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        require(x.width.isqrt().pow(2) == x.width, || {
            format!("a row of {} is not a square matrix", x.width)
        })?;
        require((1..=MAX_ITERATIONS).contains(&self.iterations), || {
            format!("`iterations` is {}; expected 1 to {MAX_ITERATIONS}", self.iterations)
        })?;
        not_negative("epsilon", self.epsilon)?;
        Ok(x)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        Work::dense(scope.elementwise().saturating_mul(2 * u64::from(self.iterations)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn rows_are_square_matrices() {
        let parts = Parts::new(&[9, 8], &[]);
        let shape = |x: u32, iterations: u32, epsilon: f32| {
            parts.shape(
                json!({"op": "sinkhorn", "x": x, "iterations": iterations, "epsilon": epsilon}),
            )
        };
        assert_eq!(shape(0, 20, 0.5), "tokens x 9");
        assert_eq!(shape(1, 20, 0.5), "a row of 8 is not a square matrix");
        assert_eq!(shape(0, 0, 0.5), "`iterations` is 0; expected 1 to 1000");
        assert_eq!(shape(0, 1001, 0.5), "`iterations` is 1001; expected 1 to 1000");
        assert_eq!(shape(0, 20, -0.5), "`epsilon` is -0.5; expected at least 0");
    }
}
