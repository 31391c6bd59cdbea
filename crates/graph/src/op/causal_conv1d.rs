//! Causal depthwise convolution over tokens.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::field::{is_one, one};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope, equal, nonzero, product};
use crate::tensor::Shape;

/// Convolves each column with a kernel of its own:
/// `y[t] = bias + sum over i of weight[i] x[t - (kernel - 1 - i) dilation]`, with 0 before the first token.
///
/// - Inputs: `x` `[tokens, n]`.
/// - Weights: `weight` `[kernel, n]` or `[kernel, 1, n]`; `bias` `[n]`, optional.
/// - State: a `row_history` of `(kernel - 1) dilation` rows of width `n`.
/// - Output: `[tokens, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CausalConv1d {
    /// Input.
    pub x: ValueId,
    /// Kernels.
    pub weight: WeightId,
    /// Bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<WeightId>,
    /// Distance between the tokens of a kernel.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub dilation: u32,
    /// Convolution state.
    pub state: StateId,
}

impl Operation for CausalConv1d {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        [self.weight].into_iter().chain(self.bias).collect()
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.token_input(self.x)?;
        let [kernel, one, width] = scope.dims(self.weight)?;
        let width = product(one, width)?;
        equal("width of the input", x.width.into(), width)?;
        scope.optional_weight(self.bias, &[width])?;
        nonzero("dilation", self.dilation)?;
        scope.row_history(self.state, x.width, product(kernel - 1, self.dilation.into())?)?;
        Ok(x)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        scope.dense(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::State;

    #[test]
    fn the_state_has_the_rows_before_the_kernel() {
        let states = [State::RowHistory { width: 8, len: 6 }];
        let parts = Parts::new(&[8], &[&[4, 8], &[4, 1, 8]]).with(&states);
        let shape = |weight: u32, dilation: u32| {
            parts.shape(json!({"op": "causal_conv1d", "x": 0, "weight": weight, "dilation": dilation,
                               "state": 0}))
        };
        assert_eq!(shape(0, 2), "tokens x 8");
        assert_eq!(shape(1, 2), "tokens x 8");
        assert_eq!(shape(0, 0), "`dilation` is 0; expected at least 1");
        assert_eq!(
            shape(0, 1),
            "the state is a history of 6 rows of width 8; expected a history of 3 rows of width 8"
        );
    }
}
