//! Constants by token id.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope, ascending, finite};
use crate::tensor::Shape;

/// Returns one number per token, looked up by its id: `y[t] = values[id(t)]`, or `default`.
///
/// - Output: `[tokens, 1]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConstant {
    /// Token ids with their numbers, in ascending order.
    pub values: Vec<(u32, f32)>,
    /// Number of all other tokens.
    pub default: f32,
}

impl Operation for TokenConstant {
    fn inputs(&self) -> Vec<ValueId> {
        Vec::new()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        ascending("values", &self.values)?;
        for (_, number) in &self.values {
            finite("values", *number)?;
        }
        finite("default", self.default)?;
        Shape::new(scope.token_rows()?, 1)
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn values_are_finite_and_ascending() {
        let parts = Parts::default();
        let op = |values, default: f32| json!({"op": "token_constant", "values": values, "default": default});
        assert_eq!(parts.shape(op(json!([[2, 1.0], [5, 2.0]]), 0.0)), "tokens x 1");
        assert_eq!(
            parts.shape(op(json!([[5, 1.0], [2, 2.0]]), 0.0)),
            "the token ids of `values` are not in ascending order"
        );
        assert_eq!(
            parts.shape(op(json!([[5, 1e39]]), 0.0)),
            "`values` is inf; expected a finite number"
        );
    }
}
