//! Softmax.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::field::{is_one, one};
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Applies softmax to each group of a row: `y[i] = exp(x[i]) / sum over j of exp(x[j])`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Input.
    pub x: ValueId,
    /// Number of groups of a row.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
}

impl Operation for Softmax {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        x.group_len(self.groups)?;
        Ok(x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn groups_divide_a_row() {
        let parts = Parts::new(&[8], &[]);
        assert_eq!(parts.shape(json!({"op": "softmax", "x": 0, "groups": 2})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "softmax", "x": 0, "groups": 3})),
            "a row of 8 is not divisible into 3 groups"
        );
    }
}
