//! Selective scan of state-space models (Mamba).

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope, equal, product, require};
use crate::tensor::Shape;

/// Scans a state-space model over the tokens. For element `i` of head `h` in group `g = floor(h groups / heads)`
/// and element `k` of the state: `s = exp(dt[h] a[k, h]) s + dt[h] x[h, i] b[g, k]`, then
/// `y[h, i] = sum over k of s c[g, k] + d[h] x[h, i]`.
///
/// - Inputs: `x` `[tokens, heads len]`; `dt` `[tokens, heads]`; `b` and `c` `[tokens, groups n]`.
/// - Weights: `a` `[n, heads]` or `[1, heads]`; `d` `[heads]` or `[1, heads]`.
/// - State: a `recurrent` of `heads len n` floats.
/// - Output: `[tokens, heads len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectiveScan {
    /// Input.
    pub x: ValueId,
    /// Time step of each head, above 0.
    pub dt: ValueId,
    /// Input matrix.
    pub b: ValueId,
    /// Output matrix.
    pub c: ValueId,
    /// Decay, below 0.
    pub a: WeightId,
    /// Skip connection of each head.
    pub d: WeightId,
    /// Number of groups of heads that share `b` and `c`.
    pub groups: u32,
    /// Recurrent state.
    pub state: StateId,
}

impl Operation for SelectiveScan {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x, self.dt, self.b, self.c]
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.a, self.d]
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (x, dt) = (scope.token_input(self.x)?, scope.token_input(self.dt)?);
        let (b, c) = (scope.token_input(self.b)?, scope.token_input(self.c)?);
        let heads = u64::from(dt.width);
        require(self.groups > 0 && heads % u64::from(self.groups) == 0, || {
            format!("`groups` is {}; expected a divisor of the {heads} heads", self.groups)
        })?;
        let len = u64::from(x.group_len(dt.width)?);
        let state_len = u64::from(b.group_len(self.groups)?);
        equal("width of `c`", c.width.into(), b.width.into())?;
        let decays = scope.elements(self.a)?;
        let all = product(state_len, heads)?;
        require(decays == heads || decays == all, || {
            format!("the weight `a` has {decays} elements; expected {heads} or {all}")
        })?;
        equal("number of elements of `d`", scope.elements(self.d)?, heads)?;
        scope.recurrent(self.state, product(product(heads, len)?, state_len)?)?;
        Ok(x)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let state_len = scope.width(self.b) / u64::from(self.groups.max(1));
        Work::dense(scope.elementwise().saturating_mul(3 * state_len))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;
    use crate::tensor::State;

    fn shape(field: &str, value: Json) -> String {
        let mut op = json!({"op": "selective_scan", "x": 0, "dt": 1, "b": 2, "c": 2, "a": 0, "d": 1,
            "groups": 1, "state": 0});
        op[field] = value;
        let states = [State::Recurrent { len: 24 }];
        Parts::new(&[8, 2, 3], &[&[3, 2], &[2], &[5]]).with(&states).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let cases = [
            ("a", json!(1), "tokens x 8"),
            ("a", json!(2), "the weight `a` has 5 elements; expected 2 or 6"),
            ("d", json!(2), "the number of elements of `d` is 5; expected 2"),
            ("c", json!(0), "the width of `c` is 8; expected 3"),
            ("dt", json!(2), "a row of 8 is not divisible into 3 groups"),
            ("groups", json!(0), "`groups` is 0; expected a divisor of the 2 heads"),
            ("state", json!(1), "there is no state 1"),
        ];
        for (field, value, expected) in cases {
            assert_eq!(shape(field, value), expected, "{field}");
        }
    }
}
