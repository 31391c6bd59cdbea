//! Hashed n-gram embeddings.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{MAX_WIDTH, Result, Scope, equal, invalid, product, require};
use crate::tensor::{Shape, State};

/// Maximum number of rows of a table: far above any model, and low enough that offsets do not overflow.
const MAX_ROWS: u64 = u32::MAX as u64;

/// Looks up rows of a table by hashes of the last tokens, and concatenates them.
///
/// `t[0]` is the id of the token and `t[i]` that of the token `i` positions before. From the first
/// `end_token` on, going back, and before the start of the sequence, `t[i]` is `end_token`. The hash of
/// an n-gram is `H[n] = xor over i < n of (t[i] multipliers[i] mod 2^64)`. The first group of heads looks
/// up 2-grams, the next 3-grams, up to the number of multipliers. A head returns
/// `table[offset + H[n] mod size]`.
///
/// - Weights: `table` `[len, count]`.
/// - State: a `token_history` of one token fewer than there are multipliers.
/// - Output: `[tokens, heads len]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NgramEmbedding {
    /// Embedding table.
    pub table: WeightId,
    /// Factor of each token id: of the token itself, of the one before, and so on.
    pub multipliers: Vec<u64>,
    /// Parts of the table, equally many for each length of n-gram.
    pub heads: Vec<HashHead>,
    /// Id of the end-of-text (EOS) token.
    pub end_token: u32,
    /// History of token ids.
    pub state: StateId,
}

/// Part of an n-gram table that one hash indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HashHead {
    /// First row.
    pub offset: u64,
    /// Number of rows.
    pub size: u64,
}

impl Operation for NgramEmbedding {
    fn inputs(&self) -> Vec<ValueId> {
        Vec::new()
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.table]
    }

    fn matrices(&self) -> Vec<WeightId> {
        vec![self.table]
    }

    fn states(&self) -> Vec<StateId> {
        vec![self.state]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let token_rows = scope.token_rows()?;
        let [len, rows] = scope.extents(self.table)?;
        require((1..=MAX_WIDTH).contains(&len) && (1..=MAX_ROWS).contains(&rows), || {
            format!("the table has shape [{len}, {rows}]; expected [1..={MAX_WIDTH}, 1..={MAX_ROWS}]")
        })?;
        let lengths = (self.multipliers.len() as u64).saturating_sub(1);
        let heads = self.heads.len() as u64;
        require(lengths > 0, || "`multipliers` has fewer than 2 numbers")?;
        require(heads.is_multiple_of(lengths), || {
            format!("the number of heads is {heads}; expected a multiple of {lengths}")
        })?;
        for head in &self.heads {
            let end = head.offset.checked_add(head.size);
            let fits = head.size > 0 && end.is_some_and(|end| end <= rows);
            require(fits, || "a hash head is empty or exceeds the table")?;
        }
        match scope.state(self.state)? {
            State::TokenHistory { len } => equal("length of the token history", len.into(), lengths)?,
            other => return Err(invalid(format!("the state is {other}; expected a token history"))),
        }
        Shape::new(token_rows, product(len, heads)?)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let table = scope.elements(self.table).max(1);
        let weight_share = (scope.elementwise() as f64 / table as f64).min(1.0);
        Work { multiply_adds: 0, weight_share }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::State;

    #[test]
    fn heads_are_concatenated() {
        let parts = Parts::new(&[], &[&[3, 20]]).with(&[State::TokenHistory { len: 1 }]);
        let op = |multipliers: &[u64], size: u64| {
            json!({"op": "ngram_embedding", "table": 0, "multipliers": multipliers, "end_token": 2,
                   "state": 0, "heads": [{"offset": 0, "size": size}, {"offset": 12, "size": 8}]})
        };
        assert_eq!(parts.shape(op(&[u64::MAX, 3], 12)), "tokens x 6");
        assert_eq!(parts.shape(op(&[1, 3], 21)), "a hash head is empty or exceeds the table");
        assert_eq!(
            parts.shape(op(&[1, 3, 5], 12)),
            "the length of the token history is 1; expected 2"
        );
    }
}
