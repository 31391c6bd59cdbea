//! Storage of keys and values that the encoder computes.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId};
use crate::scope::{Result, Scope, require};
use crate::tensor::{RowDim, Shape, State};

/// Writes keys and values of the encoder to a state: for cross-attention of the decoder, or, in an encoder of token
/// features, to the KV cache, as if the tokens had been computed.
///
/// - Inputs: `key` `[rows, n]`; `value` `[rows, m]`.
/// - State: an `encoder_kv`, or for rows of tokens a `kv_cache`, of the widths `n` and `m`.
/// - Output: `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvStore {
    /// Keys.
    pub key: ValueId,
    /// Values.
    pub value: ValueId,
    /// State for keys and values.
    pub state: StateId,
}

impl Operation for KvStore {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.key, self.value]
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        require(scope.is_encoder, || "keys and values are stored outside the encoder")?;
        let (key, value) = (scope.input(self.key)?, scope.input(self.value)?);
        key.rows_equal(value)?;
        let (key_width, value_width) = (key.width, value.width);
        let expected = match scope.state(self.state)? {
            State::KvCache { .. } if key.rows == RowDim::Tokens => {
                State::kv_cache(key_width, value_width)
            }
            _ => State::EncoderKv { key_width, value_width },
        };
        scope.state_is(self.state, expected)?;
        Ok(key)
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::{RowDim, State};

    #[test]
    fn the_encoder_stores() {
        let states = [State::EncoderKv { key_width: 8, value_width: 4 }];
        let mut parts = Parts::new(&[8, 4], &[]).with(&states);
        let op = json!({"op": "kv_store", "key": 0, "value": 1, "state": 0});
        assert_eq!(parts.shape(op.clone()), "keys and values are stored outside the encoder");
        parts.is_encoder = true;
        assert_eq!(parts.shape(op), "tokens x 8");
        assert_eq!(
            parts.shape(json!({"op": "kv_store", "key": 1, "value": 0, "state": 0})),
            "the state is an encoder KV store of widths 8 and 4; expected an encoder KV store of \
             widths 4 and 8"
        );
    }

    #[test]
    fn rows_of_tokens_are_stored_in_kv_caches() {
        let states = [State::kv_cache(8, 4), State::kv_cache(4, 4)];
        let mut parts = Parts::new(&[8, 4], &[]).with(&states);
        parts.is_encoder = true;
        let op = |state: u32| json!({"op": "kv_store", "key": 0, "value": 1, "state": state});
        assert_eq!(parts.shape(op(0)), "tokens x 8");
        assert_eq!(
            parts.shape(op(1)),
            "the state is a KV cache of widths 4 and 4; expected a KV cache of widths 8 and 4"
        );
        parts.shapes[0].rows = RowDim::Frames { stride: 1 };
        parts.shapes[1].rows = RowDim::Frames { stride: 1 };
        assert_eq!(
            parts.shape(op(0)),
            "the state is a KV cache of widths 8 and 4; expected an encoder KV store of widths 8 and 4"
        );
    }
}
