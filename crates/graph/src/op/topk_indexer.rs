//! Selection of the best blocks of positions for sparse attention.

use serde::{Deserialize, Serialize};

use super::{Mask, Operation};
use crate::cost::{CostScope, Work};
use crate::field::{is_default, is_one, is_zero, one};
use crate::id::{StateId, ValueId};
use crate::scope::{Result, Scope, equal, invalid, nonzero, product, require};
use crate::tensor::{Shape, State};

/// Returns, for each token, the numbers of the `top_k` blocks of positions whose keys score best (indexer of
/// DeepSeek sparse attention).
///
/// The score of a position up to the token's own is `sum over heads h of weights[h] max(q[h] k, 0)`. Without
/// `weights` and with `sum_heads` all weights are 1; without both, each head selects for itself by `q[h] k`. The
/// score of a block is the maximum of its positions. Blocks come best first, the lower number first among
/// equals, then -1 for missing ones. If the state holds keys of blocks, each block that ends at or before the
/// token stands for a position.
///
/// - Inputs: `query` `[tokens, heads n]`; `key` `[tokens, n]`; `weights` `[tokens, heads]`, optional.
/// - State: a `kv_cache` of the keys, without values.
/// - Output: `[tokens, top_k]`, or `[tokens, heads top_k]` if each head selects for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopkIndexer {
    /// Queries.
    pub query: ValueId,
    /// One key per token, shared by all heads.
    pub key: ValueId,
    /// Weights of the heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<ValueId>,
    /// Number of query heads.
    pub heads: u32,
    /// Whether scores of heads without weights are summed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sum_heads: bool,
    /// Number of selected blocks.
    pub top_k: u32,
    /// Positions per block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// Number of blocks, up to the token's own, that are selected whatever their score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub local_blocks: u32,
    /// KV cache of keys.
    pub state: StateId,
}

impl Operation for TopkIndexer {
    fn inputs(&self) -> Vec<ValueId> {
        [self.query, self.key].into_iter().chain(self.weights).collect()
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (query, key) = (scope.token_input(self.query)?, scope.token_input(self.key)?);
        nonzero("heads", self.heads)?;
        nonzero("top_k", self.top_k)?;
        nonzero("block", self.block)?;
        let width = product(key.width.into(), self.heads.into())?;
        equal("width of the queries", query.width.into(), width)?;
        match scope.state(self.state)? {
            State::KvCache { key_width, value_width: 0, block: 1.. } if key_width == key.width => {}
            other => {
                let expected = State::kv_cache(key.width, 0);
                return Err(invalid(format!("the state is {other}; expected {expected}")));
            }
        }
        let selections = match self.weights {
            Some(weights) => {
                let weights = scope.token_input(weights)?;
                require(!self.sum_heads, || "`sum_heads` occurs together with `weights`")?;
                equal("width of `weights`", weights.width.into(), self.heads.into())?;
                1
            }
            None if self.sum_heads => 1,
            None => self.heads,
        };
        Shape::new(query.rows, product(self.top_k.into(), selections.into())?)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let pairs = Mask::Causal.pairs(scope) / scope.block(self.state);
        Work::dense(pairs.saturating_mul(scope.width(self.query)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;
    use crate::tensor::State;

    fn shape(field: &str, value: Json) -> String {
        let mut op =
            json!({"op": "topk_indexer", "query": 0, "key": 1, "heads": 2, "top_k": 3, "state": 0});
        op[field] = value;
        let states = [State::kv_cache(4, 0), State::kv_cache(4, 4)];
        Parts::new(&[8, 4, 3, 2], &[]).with(&states).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let cases = [
            ("block", json!(2), "tokens x 6"),
            ("sum_heads", json!(true), "tokens x 3"),
            ("weights", json!(3), "tokens x 3"),
            ("weights", json!(2), "the width of `weights` is 3; expected 2"),
            ("heads", json!(0), "`heads` is 0; expected at least 1"),
            ("heads", json!(1), "the width of the queries is 8; expected 4"),
            ("top_k", json!(0), "`top_k` is 0; expected at least 1"),
            ("block", json!(0), "`block` is 0; expected at least 1"),
            ("state", json!(1), "the state is a KV cache of widths 4 and 4; expected"),
        ];
        for (field, value, expected) in cases {
            let found = shape(field, value);
            assert!(found.contains(expected), "{field}: {found}");
        }
    }
}
