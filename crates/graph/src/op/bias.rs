//! Addition of a bias.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Adds a weight to each row: `y = x + weight`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Weights: `weight` `[n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bias {
    /// Input.
    pub x: ValueId,
    /// Bias.
    pub weight: WeightId,
}

impl Operation for Bias {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.weight]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        scope.vector(self.weight, x.width.into())?;
        Ok(x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_bias_is_as_wide_as_the_input() {
        let parts = Parts::new(&[8], &[&[8], &[4]]);
        assert_eq!(parts.shape(json!({"op": "bias", "x": 0, "weight": 0})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "bias", "x": 0, "weight": 1})),
            "the number of elements of the weight is 4; expected 8"
        );
    }
}
