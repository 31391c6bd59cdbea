//! Token shift of RWKV.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId};
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Returns the row of the preceding token of the sequence: `y[t] = x[t - 1]`, with 0 for the first token.
///
/// - Inputs: `x` `[tokens, n]`.
/// - State: a `row_history` of one row of width `n`.
/// - Output: `[tokens, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenShift {
    /// Input.
    pub x: ValueId,
    /// Last row.
    pub state: StateId,
}

impl Operation for TokenShift {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.token_input(self.x)?;
        scope.row_history(self.state, x.width, 1)?;
        Ok(x)
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::State;

    #[test]
    fn the_state_is_one_row() {
        let states = [State::RowHistory { width: 8, len: 1 }, State::RowHistory { width: 8, len: 2 }];
        let parts = Parts::new(&[8], &[]).with(&states);
        assert_eq!(parts.shape(json!({"op": "token_shift", "x": 0, "state": 0})), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "token_shift", "x": 0, "state": 1})),
            "the state is a history of 2 rows of width 8; expected a history of 1 rows of width 8"
        );
    }
}
