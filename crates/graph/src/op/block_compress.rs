//! Compression of blocks of tokens to one row each.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::field::is_default;
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope, equal, nonzero};
use crate::tensor::Shape;

/// Compresses each complete block of tokens to one row, in the row of its last token; other rows are 0.
///
/// Element `c` is the mean of `x[t, c]` over the tokens `t` of the block, weighted by the softmax over `t` of
/// `gate[t, c] + position_bias[position(t) mod block][c]`. Without a gate it is 0.
///
/// With `overlap`, `x`, `gate` and `position_bias` have two halves: the first applies to the tokens of the block
/// before, if there is one, and the second to those of the block itself.
///
/// - Inputs: `x` `[tokens, n]`; `gate` `[tokens, n]`, optional.
/// - Weights: `position_bias` `[n, block]`, optional.
/// - State: a `row_history` of `block` rows of width `2 n`, or of `2 block` rows with `overlap`.
/// - Output: `[tokens, n]`, with `overlap` `[tokens, n / 2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockCompress {
    /// Input.
    pub x: ValueId,
    /// Logits of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ValueId>,
    /// Bias of the logits by position within a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_bias: Option<WeightId>,
    /// Tokens per block.
    pub block: u32,
    /// Whether the block before takes part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overlap: bool,
    /// History of `x` and `gate`, concatenated; the row of a position is `position mod rows`.
    pub state: StateId,
}

impl BlockCompress {
    /// Returns the number of rows of the state.
    pub fn state_rows(&self) -> u64 {
        u64::from(self.block) * if self.overlap { 2 } else { 1 }
    }
}

impl Operation for BlockCompress {
    fn inputs(&self) -> Vec<ValueId> {
        [self.x].into_iter().chain(self.gate).collect()
    }

    fn weights(&self) -> Vec<WeightId> {
        self.position_bias.into_iter().collect()
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.token_input(self.x)?;
        if let Some(gate) = self.gate {
            equal("width of the gate", scope.token_input(gate)?.width.into(), x.width.into())?;
        }
        nonzero("block", self.block)?;
        scope.optional_weight(self.position_bias, &[x.width.into(), self.block.into()])?;
        scope.row_history(self.state, 2 * x.width, self.state_rows())?;
        Shape::new(x.rows, x.group_len(if self.overlap { 2 } else { 1 })?.into())
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        // One multiply-add for the weight of an element, and one for the element.
        Work::dense(scope.rows.saturating_mul(2 * scope.width(self.x)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;
    use crate::tensor::State;

    fn shape(field: &str, value: Json) -> String {
        let mut op = json!({"op": "block_compress", "x": 0, "gate": 0, "position_bias": 0, "block": 3,
            "overlap": true, "state": 0});
        op[field] = value;
        let states = [State::RowHistory { width: 16, len: 6 }];
        Parts::new(&[8, 4], &[&[8, 3], &[4, 20]]).with(&states).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let cases = [
            ("block", json!(3), "tokens x 4"),
            ("block", json!(0), "`block` is 0; expected at least 1"),
            ("block", json!(u32::MAX), "the weight has shape [8, 3]; expected [8, 4294967295]"),
            ("gate", json!(1), "the width of the gate is 4; expected 8"),
            ("position_bias", json!(1), "the weight has shape [4, 20]; expected [8, 3]"),
            ("overlap", json!(false), "expected a history of 3 rows of width 16"),
            ("state", json!(1), "there is no state 1"),
        ];
        for (field, value, expected) in cases {
            let found = shape(field, value);
            assert!(found.contains(expected), "{field}: {found}");
        }
    }
}
