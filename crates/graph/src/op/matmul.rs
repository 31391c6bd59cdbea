//! Matrix multiplication.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal};
use crate::tensor::Shape;

/// Multiplies each row by a matrix: `y[j] = sum over i of x[i] W[j][i] + bias[j]`.
///
/// - Inputs: `x` `[rows, k]`.
/// - Weights: `weight` `[k, n]`; `bias` `[n]`, optional.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matmul {
    /// Input.
    pub x: ValueId,
    /// Matrix.
    pub weight: WeightId,
    /// Bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<WeightId>,
}

impl Operation for Matmul {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        [self.weight].into_iter().chain(self.bias).collect()
    }

    fn matrices(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let [input, output] = scope.dims(self.weight)?;
        let x = scope.input(self.x)?;
        equal("width of the input", x.width.into(), input)?;
        scope.optional_weight(self.bias, &[output])?;
        Shape::new(x.rows, output)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        scope.dense(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_width_becomes_that_of_the_matrix() {
        let parts = Parts::new(&[8, 4], &[&[8, 6], &[6], &[8, 6, 2]]);
        assert_eq!(
            parts.shape(json!({"op": "matmul", "x": 0, "weight": 0, "bias": 1})),
            "tokens x 6"
        );
        let narrow = parts.shape(json!({"op": "matmul", "x": 1, "weight": 0}));
        assert_eq!(narrow, "the width of the input is 4; expected 8");
        let cube = parts.shape(json!({"op": "matmul", "x": 0, "weight": 2}));
        assert_eq!(cube, "the weight [8, 6, 2] has more than 2 dimensions");
        let bias = parts.shape(json!({"op": "matmul", "x": 0, "weight": 0, "bias": 0}));
        assert_eq!(bias, "the weight has shape [8, 6]; expected [6]");
    }
}
