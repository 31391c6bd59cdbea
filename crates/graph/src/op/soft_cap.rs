//! Logit soft-capping.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope, positive};
use crate::tensor::Shape;

/// Caps all elements smoothly: `y = cap tanh(x / cap)`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftCap {
    /// Input.
    pub x: ValueId,
    /// Limit that absolute values approach.
    pub cap: f32,
}

impl Operation for SoftCap {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        positive("cap", self.cap)?;
        scope.input(self.x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn the_cap_is_positive() {
        let parts = Parts::new(&[8], &[]);
        assert_eq!(parts.shape(json!({"op": "soft_cap", "x": 0, "cap": 30.0})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "soft_cap", "x": 0, "cap": 0.0})),
            "`cap` is 0; expected a number above 0"
        );
    }
}
