//! Matrix multiplication with a matrix selected per row.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal};
use crate::tensor::Shape;

/// Multiplies each row by one of several matrices: `y[r] = x[r] W[round(ids[r])]`.
///
/// An id is rounded with halves away from 0, and clamped to the matrices that exist; NaN selects the first.
///
/// - Inputs: `x` `[rows, k]`; `ids` `[rows, 1]`.
/// - Weights: `weight` `[k, n, count]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatmulId {
    /// Input.
    pub x: ValueId,
    /// Number of the matrix of each row.
    pub ids: ValueId,
    /// Matrices.
    pub weight: WeightId,
}

impl Operation for MatmulId {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x, self.ids]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn matrices(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let [input, output, _] = scope.dims(self.weight)?;
        let (x, ids) = (scope.input(self.x)?, scope.input(self.ids)?);
        equal("width of the input", x.width.into(), input)?;
        equal("width of `ids`", ids.width.into(), 1)?;
        x.rows_equal(ids)?;
        Shape::new(x.rows, output)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let count = scope.extent(self.weight, 2).max(1);
        Work {
            multiply_adds: scope.rows.saturating_mul(scope.elements(self.weight) / count),
            weight_share: (scope.rows as f64 / count as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn ids_are_one_number_per_row() {
        let parts = Parts::new(&[4, 1], &[&[4, 6, 3]]);
        assert_eq!(
            parts.shape(json!({"op": "matmul_id", "x": 0, "ids": 1, "weight": 0})),
            "tokens x 6"
        );
        let wide = parts.shape(json!({"op": "matmul_id", "x": 0, "ids": 0, "weight": 0}));
        assert_eq!(wide, "the width of `ids` is 4; expected 1");
    }
}
