//! Blocks of tokens that become one row.

use serde::{Deserialize, Serialize};

use crate::raw::{StateId, ValueId, WeightId};

/// Blocks of `n` tokens, counted from the first of a sequence, as one row each: at the last token of a block
/// the mean of its rows, number by number weighed by the softmax over the block of `scores` plus the weight's
/// row of that place in the block. At all other tokens 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blend {
    /// What becomes one row.
    pub x: ValueId,
    /// How much each number of `x` counts: as wide.
    pub scores: ValueId,
    /// Added to the scores: `[width, n]`.
    pub weight: WeightId,
    /// Rows of a block and their scores: a [`State::Rows`](crate::State::Rows) of `n - 1` rows of twice the width.
    pub state: StateId,
}
