//! WKV recurrences of RWKV.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope, equal, product, require};
use crate::tensor::{RowDim, Shape};

/// Computes a WKV recurrence of RWKV.
///
/// - Inputs: all `[tokens, n]`.
/// - Weights: `decay` and `bonus` `[n]`, in versions that have them.
/// - State: a `recurrent` of `3 n` floats in version 4, of `n head_len` in others.
/// - Output: `[tokens, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "version", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wkv {
    /// Version 4, for each column, with `w = -exp(decay)`, a numerator `p` and a denominator `q`:
    /// `y = (p + exp(bonus + k) v) / (q + exp(bonus + k))`, then `p = exp(w) p + exp(k) v` and
    /// `q = exp(w) q + exp(k)`.
    ///
    /// Numerator and denominator are stored divided by a common exponential, so that nothing overflows. The state
    /// holds all numerators, then denominators, then exponents, which begin as -1e38.
    V4 {
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// Decay of each column.
        decay: WeightId,
        /// Bonus of the current token.
        bonus: WeightId,
        /// Recurrent state.
        state: StateId,
    },
    /// Version 6, for each head with a matrix `S`: `y[j] = sum over i of r[i] (bonus[i] k[i] v[j] + S[i][j])`, then
    /// `S[i][j] = w[i] S[i][j] + k[i] v[j]`.
    V6 {
        /// Receptance.
        r: ValueId,
        /// Decay, between 0 and 1.
        w: ValueId,
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// Bonus of the current token.
        bonus: WeightId,
        /// Length of a head.
        head_len: u32,
        /// Recurrent state.
        state: StateId,
    },
    /// Version 7, for each head with a matrix `S`:
    /// `S[i][j] = w[j] S[i][j] + v[i] k[j] + (sum over l of S[i][l] a[l]) b[j]`, then
    /// `y[i] = sum over j of S[i][j] r[j]`.
    V7 {
        /// Receptance.
        r: ValueId,
        /// Decay, between 0 and 1.
        w: ValueId,
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// Removal key.
        a: ValueId,
        /// Replacement key.
        b: ValueId,
        /// Length of a head.
        head_len: u32,
        /// Recurrent state.
        state: StateId,
    },
}

impl Operation for Wkv {
    fn inputs(&self) -> Vec<ValueId> {
        match *self {
            Self::V4 { k, v, .. } => vec![k, v],
            Self::V6 { r, w, k, v, .. } => vec![r, w, k, v],
            Self::V7 { r, w, k, v, a, b, .. } => vec![r, w, k, v, a, b],
        }
    }

    fn weights(&self) -> Vec<WeightId> {
        match *self {
            Self::V4 { decay, bonus, .. } => vec![decay, bonus],
            Self::V6 { bonus, .. } => vec![bonus],
            Self::V7 { .. } => Vec::new(),
        }
    }

    fn states(&self) -> Vec<StateId> {
        match *self {
            Self::V4 { state, .. } | Self::V6 { state, .. } | Self::V7 { state, .. } => vec![state],
        }
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        match *self {
            Self::V4 { k, v, decay, bonus, state } => {
                let shape = scope.equal_inputs(k, v)?;
                require(shape.rows == RowDim::Tokens, || {
                    format!("the input has {} as rows; expected tokens", shape.rows)
                })?;
                let width = u64::from(shape.width);
                scope.vector(decay, width)?;
                scope.vector(bonus, width)?;
                scope.recurrent(state, 3 * width)?;
                Ok(shape)
            }
            Self::V6 { r, w, k, v, bonus, head_len, state } => {
                let shape = heads(scope, r, &[w, k, v], head_len, state)?;
                equal("number of elements of `bonus`", scope.elements(bonus)?, shape.width.into())?;
                Ok(shape)
            }
            Self::V7 { r, w, k, v, a, b, head_len, state } => {
                heads(scope, r, &[w, k, v, a, b], head_len, state)
            }
        }
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let per_element = match *self {
            Self::V4 { .. } => 8,
            Self::V6 { head_len, .. } => 3 * u64::from(head_len),
            Self::V7 { head_len, .. } => 5 * u64::from(head_len),
        };
        Work::dense(scope.elementwise().saturating_mul(per_element))
    }
}

/// Checks inputs of equal shape, and a state of one matrix per head.
fn heads(
    scope: &Scope<'_>,
    r: ValueId,
    others: &[ValueId],
    head_len: u32,
    state: StateId,
) -> Result<Shape> {
    let shape = scope.token_input(r)?;
    for other in others {
        scope.equal_inputs(r, *other)?;
    }
    require(head_len > 0 && shape.width % head_len == 0, || {
        format!("`head_len` is {head_len}; expected a divisor of {}", shape.width)
    })?;
    scope.recurrent(state, product(shape.width.into(), head_len.into())?)?;
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::State;

    #[test]
    fn states_are_matrices_of_heads() {
        let states = [State::Recurrent { len: 24 }, State::Recurrent { len: 32 }];
        let parts = Parts::new(&[8], &[&[8], &[4]]).with(&states);
        let v4 = |bonus: u32| {
            json!({"op": "wkv", "version": "v4", "k": 0, "v": 0, "decay": 0, "bonus": bonus, "state": 0})
        };
        assert_eq!(parts.shape(v4(0)), "tokens x 8");
        assert_eq!(parts.shape(v4(1)), "the number of elements of the weight is 4; expected 8");
        let v6 = |head_len: u32| {
            json!({"op": "wkv", "version": "v6", "r": 0, "w": 0, "k": 0, "v": 0, "bonus": 0,
                   "head_len": head_len, "state": 1})
        };
        assert_eq!(parts.shape(v6(4)), "tokens x 8");
        assert_eq!(parts.shape(v6(3)), "`head_len` is 3; expected a divisor of 8");
        assert_eq!(
            parts.shape(v6(8)),
            "the state is a recurrent state of 32 floats; expected a recurrent state of 64 floats"
        );
    }
}
