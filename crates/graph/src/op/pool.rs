//! Pooling of the tokens of a sequence.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope, require};
use crate::tensor::{RowDim, Shape};

/// Pools the rows of each sequence to one; 0 for sequences without rows.
///
/// - Inputs: `x` `[tokens, n]` or `[outputs, n]`.
/// - Output: `[sequences, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Input.
    pub x: ValueId,
    /// Pooling type.
    pub kind: Pooling,
}

/// Type of pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Mean of all rows.
    Mean,
    /// First row.
    Cls,
    /// Last row.
    Last,
}

impl Operation for Pool {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        require(matches!(x.rows, RowDim::Tokens | RowDim::Outputs), || {
            format!("the input has {} as rows; expected tokens or outputs", x.rows)
        })?;
        Ok(Shape { rows: RowDim::Sequences, ..x })
    }

    fn needs_whole_batch(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn each_sequence_has_one_row() {
        let mut parts = Parts::new(&[8], &[]);
        let op = |x: u32| json!({"op": "pool", "x": x, "kind": "cls"});
        assert_eq!(parts.shape(op(0)), "sequences x 8");
        parts.shapes[0].rows = crate::tensor::RowDim::Sequences;
        assert_eq!(
            parts.shape(op(0)),
            "the input has sequences as rows; expected tokens or outputs"
        );
    }
}
