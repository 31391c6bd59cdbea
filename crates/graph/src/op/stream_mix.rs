//! Mixing of residual streams (hyper-connections).

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope, product};
use crate::tensor::Shape;

/// Mixes streams by a matrix per row: `y[d] = sum over s of matrix[s][d] x[s]`.
///
/// - Inputs: `x` `[rows, streams n]`; `matrix` `[rows, streams m]`.
/// - Output: `[rows, m n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamMix {
    /// Streams, concatenated.
    pub x: ValueId,
    /// Mixing matrix of each row.
    pub matrix: ValueId,
    /// Number of streams of `x`.
    pub streams: u32,
}

impl Operation for StreamMix {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x, self.matrix]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (x, matrix) = (scope.input(self.x)?, scope.input(self.matrix)?);
        x.rows_equal(matrix)?;
        let outputs = matrix.group_len(self.streams)?;
        Shape::new(x.rows, product(x.group_len(self.streams)?.into(), outputs.into())?)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        Work::dense(scope.elementwise().saturating_mul(self.streams.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_matrix_tells_the_number_of_outputs() {
        let parts = Parts::new(&[8, 6], &[]);
        let shape = |streams: u32| {
            parts.shape(json!({"op": "stream_mix", "x": 0, "matrix": 1, "streams": streams}))
        };
        assert_eq!(shape(2), "tokens x 12");
        assert_eq!(shape(3), "a row of 8 is not divisible into 3 groups");
        assert_eq!(shape(0), "a row of 6 is not divisible into 0 groups");
    }
}
