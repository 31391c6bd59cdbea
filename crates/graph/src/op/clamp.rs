//! Clamping to a symmetric range.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope, not_negative};
use crate::tensor::Shape;

/// Clamps all elements: `y = min(max(x, -bound), bound)`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clamp {
    /// Input.
    pub x: ValueId,
    /// Maximum absolute value.
    pub bound: f32,
}

impl Operation for Clamp {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        not_negative("bound", self.bound)?;
        scope.input(self.x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_bound_is_not_negative() {
        let parts = Parts::new(&[8], &[]);
        assert_eq!(parts.shape(json!({"op": "clamp", "x": 0, "bound": 2.0})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "clamp", "x": 0, "bound": -2.0})),
            "`bound` is -2; expected at least 0"
        );
    }
}
