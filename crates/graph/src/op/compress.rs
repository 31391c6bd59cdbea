//! Rows that stand for several tokens.

use serde::{Deserialize, Serialize};

use crate::raw::{StateId, ValueId, WeightId};

/// Of each whole block of tokens one row, that of its last token; those of all other tokens are 0.
///
/// Each number of it is the mean of that number of `x` over the tokens of the block, weighted by the softmax
/// over these tokens of `gate`, which is 0 if there is none, and to which `place` is added by the place of a token in
/// its block.
///
/// With `overlap` the tokens of the block before take part, if there is one: `x`, `gate` and `place` have
/// two halves, the first of which counts for these tokens, and the second for those of the block itself.
///
/// What an indexer looks at may be made by it as well as what is attended to; a
/// [`State::Cache`](crate::State::Cache) of the same blocks keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compress {
    /// What the mean is taken of.
    pub x: ValueId,
    /// What weights are made of: as wide as `x`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<ValueId>,
    /// Added to `gate`, for each place in a block: `[width of x, block]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<WeightId>,
    /// Tokens of a block.
    pub block: u32,
    /// Whether the block before takes part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
    /// The last `block` rows of `x` and `gate` beside each other, or twice as many with `overlap`: a
    /// [`State::Rows`](crate::State::Rows).
    pub state: StateId,
}

impl Compress {
    /// Rows of its state.
    pub fn rows(&self) -> u64 {
        u64::from(self.block) * if self.overlap { 2 } else { 1 }
    }
}
