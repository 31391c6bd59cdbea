//! Addition of two values.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Adds two values element by element: `y = a + b`.
///
/// - Inputs: `a` and `b`, both `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// First summand.
    pub a: ValueId,
    /// Second summand.
    pub b: ValueId,
}

impl Operation for Add {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.a, self.b]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        scope.equal_inputs(self.a, self.b)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn shapes_are_equal() {
        let parts = Parts::new(&[8, 8, 4], &[]);
        assert_eq!(parts.shape(json!({"op": "add", "a": 0, "b": 1})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "add", "a": 0, "b": 2})),
            "the inputs have different shapes: tokens x 8 and tokens x 4"
        );
        assert_eq!(
            parts.shape(json!({"op": "add", "a": 0, "b": 3})),
            "value 3 is not computed before this operation"
        );
    }
}
