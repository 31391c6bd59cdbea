//! Sums of groups.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::field::{is_one, one};
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Sums each group of a row: `y[g] = sum over i of x[g, i]`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, groups]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Input.
    pub x: ValueId,
    /// Number of groups of a row.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
}

impl Operation for Sum {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        x.group_len(self.groups)?;
        Shape::new(x.rows, self.groups.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn each_group_becomes_one_number() {
        let parts = Parts::new(&[8], &[]);
        assert_eq!(parts.shape(json!({"op": "sum", "x": 0, "groups": 4})), "tokens x 4");
        assert_eq!(
            parts.shape(json!({"op": "sum", "x": 0, "groups": 3})),
            "a row of 8 is not divisible into 3 groups"
        );
    }
}
