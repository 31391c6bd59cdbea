//! Matrix multiplication with one matrix per head.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal, product};
use crate::tensor::Shape;

/// Multiplies each head by a matrix of its own: `y[h] = x[h] W[h]`.
///
/// - Inputs: `x` `[rows, heads k]`.
/// - Weights: `weight` `[k, n, heads]`, or the matrices stacked: `[k, n heads]`.
/// - Output: `[rows, heads n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchedMatmul {
    /// Input, of heads.
    pub x: ValueId,
    /// Matrices.
    pub weight: WeightId,
}

impl Operation for BatchedMatmul {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn matrices(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let [input, output, matrices] = scope.dims(self.weight)?;
        let x = scope.input(self.x)?;
        let heads = u64::from(x.width) / input;
        let width = product(output, matrices)?;
        let is_stacked = matrices == 1 && heads > 0 && width % heads == 0;
        let heads = if is_stacked { heads } else { matrices };
        equal("width of the input", x.width.into(), product(input, heads)?)?;
        Shape::new(x.rows, width)
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
    fn matrices_are_separate_or_stacked() {
        let parts = Parts::new(&[8], &[&[4, 3, 2], &[4, 6], &[8, 6, 3]]);
        let shape = |weight: u32| parts.shape(json!({"op": "batched_matmul", "x": 0, "weight": weight}));
        assert_eq!(shape(0), "tokens x 6");
        assert_eq!(shape(1), "tokens x 6");
        assert_eq!(shape(2), "the width of the input is 8; expected 24");
    }
}
