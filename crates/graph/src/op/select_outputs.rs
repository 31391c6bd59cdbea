//! Selection of the tokens whose output is requested.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::{RowDim, Shape};

/// Returns the rows of the tokens whose output the caller requested.
///
/// - Inputs: `x` `[tokens, n]`.
/// - Output: `[outputs, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectOutputs {
    /// Input.
    pub x: ValueId,
}

impl Operation for SelectOutputs {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.token_input(self.x)?;
        Ok(Shape { rows: RowDim::Outputs, ..x })
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::{RowDim, Shape};

    #[test]
    fn outputs_are_selected_once() {
        let mut parts = Parts::new(&[8], &[]);
        parts.shapes.push(Shape { rows: RowDim::Outputs, width: 8 });
        assert_eq!(parts.shape(json!({"op": "select_outputs", "x": 0})), "outputs x 8");
        assert_eq!(
            parts.shape(json!({"op": "select_outputs", "x": 1})),
            "value 1 has outputs as rows; expected tokens"
        );
    }
}
