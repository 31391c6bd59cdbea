//! Lookup of rows in a table.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, ascending, invalid, require};
use crate::tensor::Shape;

/// Looks up a row of a table for each token: `y[t] = table[index(t)]`.
///
/// - Weights: `table` `[n, count]`.
/// - Output: `[tokens, n]`; with the index `row`, the rows of the preceding value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Embedding table.
    pub table: WeightId,
    /// Number by which the table is indexed.
    pub index: Index,
}

/// Number of a token by which an embedding table is indexed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Token id.
    Token,
    /// Token id, replaced by the second of a pair if it is the first; pairs in ascending order.
    MappedToken(Vec<(u32, u32)>),
    /// Position in the sequence, from 0.
    Position,
    /// Number of the row, for frames.
    Row,
    /// Always 0.
    Zero,
}

impl Operation for Embedding {
    fn inputs(&self) -> Vec<ValueId> {
        Vec::new()
    }

    fn weights(&self) -> Vec<WeightId> {
        vec![self.table]
    }

    fn matrices(&self) -> Vec<WeightId> {
        vec![self.table]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let [width, count] = scope.dims(self.table)?;
        if let Index::MappedToken(tokens) = &self.index {
            ascending("mapped_token", tokens)?;
            let has_row = |(_, id): &(u32, u32)| u64::from(*id) < count;
            require(tokens.iter().all(has_row), || "a mapped token id has no row in the table")?;
        }
        let rows = match (&self.index, scope.shapes.last()) {
            (Index::Row, Some(preceding)) => preceding.rows,
            (Index::Row, None) => return Err(invalid("no value precedes the index `row`")),
            _ => scope.token_rows()?,
        };
        Shape::new(rows, width)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let count = scope.elements(self.table) / u64::from(scope.output.width.max(1));
        let weight_share = (scope.rows as f64 / count.max(1) as f64).min(1.0);
        Work { multiply_adds: 0, weight_share }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn rows_have_the_width_of_the_table() {
        let parts = Parts::new(&[], &[&[4, 9]]);
        assert_eq!(parts.shape(json!({"op": "embedding", "table": 0, "index": "token"})), "tokens x 4");
        let mapped = json!({"op": "embedding", "table": 0, "index": {"mapped_token": [[2, 9]]}});
        assert_eq!(parts.shape(mapped), "a mapped token id has no row in the table");
        let rows = json!({"op": "embedding", "table": 0, "index": "row"});
        assert_eq!(parts.shape(rows), "no value precedes the index `row`");
    }
}
