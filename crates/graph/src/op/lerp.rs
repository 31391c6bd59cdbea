//! Linear interpolation.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Interpolates between two values: `y = a weight + b (1 - weight)`.
///
/// - Inputs: `a` and `b`, both `[rows, n]`.
/// - Weights: `weight` `[n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lerp {
    /// Result where the weight is 1.
    pub a: ValueId,
    /// Result where the weight is 0.
    pub b: ValueId,
    /// Weight of `a`.
    pub weight: WeightId,
}

impl Operation for Lerp {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.a, self.b]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let shape = scope.equal_inputs(self.a, self.b)?;
        scope.vector(self.weight, shape.width.into())?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn inputs_and_weight_are_equally_wide() {
        let parts = Parts::new(&[8, 8, 4], &[&[8]]);
        assert_eq!(parts.shape(json!({"op": "lerp", "a": 0, "b": 1, "weight": 0})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "lerp", "a": 2, "b": 2, "weight": 0})),
            "the number of elements of the weight is 8; expected 4"
        );
    }
}
