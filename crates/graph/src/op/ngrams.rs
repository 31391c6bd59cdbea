//! Embeddings of n-grams.

use serde::{Deserialize, Serialize};

use crate::raw::{StateId, WeightId};

/// Rows of a table for the last tokens of a sequence, looked up by hashes of their ids.
///
/// Going back from a token of the id `t[0]`, the id of the token `i` before it is `t[i]`; from the first
/// `end` on, and before the first token of the sequence, it is `end`. The hash of the last `n` tokens is the
/// exclusive or of all `t[i] multipliers[i]` with `i < n`, in whole numbers modulo 2^64. Of the heads,
/// the first ones look at 2 tokens, as many others at 3, and so on. Each takes the row
/// `start + hash mod count`; in the result these stand one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ngrams {
    /// The table: `[length of a row, rows]`.
    pub table: WeightId,
    /// A factor for the token itself, one for that before it, and so on.
    pub multipliers: Vec<u64>,
    /// Where rows are looked up.
    pub heads: Vec<Bucket>,
    /// The id of the token that ends a text.
    pub end: u32,
    /// A [`State::Tokens`](crate::State::Tokens) of one less than there are multipliers.
    pub state: StateId,
}

/// Some rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// The first one.
    pub start: u64,
    /// How many.
    pub count: u64,
}
