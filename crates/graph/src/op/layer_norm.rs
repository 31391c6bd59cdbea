//! Layer normalization; with groups, group normalization.

use serde::{Deserialize, Serialize};

use super::{Operation, norm};
use crate::field::{is_one, one};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Normalizes each group of a row: `y = (x - mean(x)) / sqrt(variance(x) + epsilon) weight + bias`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Weights: `weight` and `bias`, both optional, `[n]` or `[n / groups]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerNorm {
    /// Input.
    pub x: ValueId,
    /// Added to the variance.
    pub epsilon: f32,
    /// Number of groups of a row, each normalized by itself.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Factor of each element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<WeightId>,
    /// Bias of each element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<WeightId>,
}

impl Operation for LayerNorm {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        self.weight.into_iter().chain(self.bias).collect()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        norm::shape(scope, self.x, self.epsilon, self.groups, [self.weight, self.bias])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn weights_fit_a_row_or_a_group() {
        let parts = Parts::new(&[8], &[&[8], &[4], &[2]]);
        let shape = |weight: u32, groups: u32| {
            parts.shape(json!({"op": "layer_norm", "x": 0, "epsilon": 1e-5, "groups": groups,
                               "weight": weight}))
        };
        assert_eq!(shape(0, 1), "tokens x 8");
        assert_eq!(shape(1, 2), "tokens x 8");
        assert_eq!(shape(2, 2), "the weight has 2 elements; expected 8 or 4");
        assert_eq!(shape(0, 3), "a row of 8 is not divisible into 3 groups");
    }
}
