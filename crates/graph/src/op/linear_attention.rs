//! Linear attention with a recurrent state.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId};
use crate::scope::{Result, Scope, equal, finite, product, require};
use crate::tensor::Shape;

/// Attends through a recurrent state: the gated delta rule (arXiv 2412.06464; with a decay per key dimension, Kimi
/// delta attention, arXiv 2510.26692), or without `beta` linear attention with decay.
///
/// For each head with a matrix `S` and its decay `w`: `S[i][j] = w[i] S[i][j]`; then with `beta`
/// `S[i][j] = S[i][j] + beta k[i] (v[j] - sum over l of k[l] S[l][j])`, without it
/// `S[i][j] = S[i][j] + k[i] v[j]`; then `y[j] = sum over i of q[i] S[i][j]`.
///
/// - Inputs: `query` and `key` `[tokens, heads n]`; `value` `[tokens, heads m]`; `decay` `[tokens, heads]` or
///   `[tokens, heads n]`; `beta` `[tokens, heads]`, optional.
/// - State: a `recurrent` of `heads n m` floats.
/// - Output: `[tokens, heads m]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearAttention {
    /// Queries.
    pub query: ValueId,
    /// Keys.
    pub key: ValueId,
    /// Values.
    pub value: ValueId,
    /// Number of heads.
    pub heads: u32,
    /// Decay of the state.
    pub decay: Decay,
    /// Update rate of the delta rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<ValueId>,
    /// Recurrent state.
    pub state: StateId,
}

/// Factor of the state of linear attention from one token to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// One factor per head, or per element of the keys.
    Value(ValueId),
    /// `exp(-factor slope)` with the slopes of [`Alibi`](super::PositionBias::Alibi).
    AlibiSlopes {
        /// Exponent of the smallest slope.
        max_bias: f32,
        /// Factor of the slopes.
        factor: f32,
    },
}

impl Operation for LinearAttention {
    fn inputs(&self) -> Vec<ValueId> {
        let decay = match self.decay {
            Decay::Value(decay) => Some(decay),
            Decay::AlibiSlopes { .. } => None,
        };
        [self.query, self.key, self.value].into_iter().chain(decay).chain(self.beta).collect()
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (query, key) = (scope.token_input(self.query)?, scope.token_input(self.key)?);
        let value = scope.token_input(self.value)?;
        equal("width of the keys", key.width.into(), query.width.into())?;
        key.group_len(self.heads)?;
        let value_len = value.group_len(self.heads)?;
        match self.decay {
            Decay::Value(decay) => {
                let decay = scope.token_input(decay)?.width;
                require(decay == self.heads || decay == key.width, || {
                    format!("the width of the decay is {decay}; expected {} or {}", self.heads, key.width)
                })?;
            }
            Decay::AlibiSlopes { max_bias, factor } => {
                finite("max_bias", max_bias)?;
                finite("factor", factor)?;
            }
        }
        if let Some(beta) = self.beta {
            equal("width of `beta`", scope.token_input(beta)?.width.into(), self.heads.into())?;
        }
        scope.recurrent(self.state, product(key.width.into(), value_len.into())?)?;
        Ok(value)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let key_len = scope.width(self.key) / u64::from(self.heads).max(1);
        let passes = if self.beta.is_some() { 4 } else { 3 };
        Work::dense(scope.elementwise().saturating_mul(passes * key_len))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;
    use crate::tensor::State;

    fn shape(field: &str, value: Json) -> String {
        let mut op = json!({"op": "linear_attention", "query": 0, "key": 0, "value": 1, "heads": 2,
            "decay": {"value": 2}, "beta": 2, "state": 0});
        op[field] = value;
        let states = [State::Recurrent { len: 24 }, State::Recurrent { len: 25 }];
        Parts::new(&[8, 6, 2], &[]).with(&states).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let slopes =
            |max_bias: f64, factor: f64| json!({"alibi_slopes": {"max_bias": max_bias, "factor": factor}});
        let cases = [
            ("decay", json!({"value": 0}), "tokens x 6"),
            ("decay", slopes(8.0, 1.0), "tokens x 6"),
            ("query", json!(1), "the width of the keys is 8; expected 6"),
            ("value", json!(4), "value 4 is not computed before this operation"),
            ("heads", json!(3), "a row of 8 is not divisible into 3 groups"),
            ("heads", json!(0), "a row of 8 is not divisible into 0 groups"),
            ("heads", json!(4), "a row of 6 is not divisible into 4 groups"),
            ("decay", json!({"value": 1}), "the width of the decay is 6; expected 2 or 8"),
            ("decay", slopes(1e39, 1.0), "`max_bias` is inf; expected a finite number"),
            ("decay", slopes(8.0, 1e39), "`factor` is inf; expected a finite number"),
            ("beta", json!(1), "the width of `beta` is 6; expected 2"),
            (
                "state",
                json!(1),
                "the state is a recurrent state of 25 floats; expected a recurrent state of 24 floats",
            ),
        ];
        for (field, value, expected) in cases {
            assert_eq!(shape(field, value), expected, "{field}");
        }
    }
}
