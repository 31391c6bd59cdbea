//! Attention, and which tokens it sees.

use serde::{Deserialize, Serialize};

use super::{is_one, is_zero, one};
use crate::raw::{StateId, ValueId, WeightId};

/// Attention of every token to those that it may see.
///
/// Of head `h`, keys and values are those of head `h / (heads / heads_kv)`. The score of a pair is
/// `scale q k`, then capped, then biased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// Queries: `heads` of `key_len`.
    pub query: ValueId,
    /// Keys and values.
    pub memory: Memory,
    /// Heads of the queries.
    pub heads: u32,
    /// Heads of keys and values.
    pub heads_kv: u32,
    /// Length of a head of queries and keys.
    pub key_len: u32,
    /// Length of a head of values.
    pub value_len: u32,
    /// Factor of the scores.
    pub scale: f32,
    /// Which tokens one sees.
    pub mask: Mask,
    /// What is added to a score for its distance.
    #[serde(default, skip_serializing_if = "PositionBias::is_none")]
    pub bias: PositionBias,
    /// Soft bound of the scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_cap: Option<f32>,
    /// Looks at no others than these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among: Option<Among>,
    /// Whole blocks of tokens that it sees besides, in the same softmax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Per head the score of a token without a value, which takes part in the softmax: `[heads]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sinks: Option<WeightId>,
}

/// Which of the tokens that the mask lets one see it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Among {
    /// Numbers of blocks of positions, as [`Choose`] makes them.
    pub chosen: ValueId,
    /// Equal parts of a row of these: head `h` of keys and values takes those of part
    /// `h groups / heads_kv`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Positions of a block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// Whether a token also looks at the block of its own position, unless it ends that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tail: bool,
}

/// Blocks of tokens of which one row is kept each. A token sees those that end no later than itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Keys: those of the last token of a block count.
    pub key: ValueId,
    /// Values, in the same way.
    pub value: ValueId,
    /// A [`State::Cache`](crate::State::Cache) of blocks.
    pub state: StateId,
    /// Looks at no others than the blocks of these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ValueId>,
}

/// The blocks of positions whose keys fit the query of a token best, of those up to its own.
///
/// The score of a position is the sum of `weight max(q k, 0)` over the heads, or, without weights, `q k`
/// of each head for itself; that of a block is the best of its positions. Of each head, or of all
/// together, the result has the numbers of the best `count` blocks, the lower number first among equals,
/// then -1 for as many as there are too few. Where the state keeps keys of blocks of tokens only, each of these
/// that ends no later than the token stands for a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// Queries: `heads` of the width of a key.
    pub query: ValueId,
    /// One key for each token.
    pub key: ValueId,
    /// Weights of the heads: `heads` numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<ValueId>,
    /// Heads of the queries.
    pub heads: u32,
    /// Whether heads without weights are added up, as if all of them were 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// Blocks that are chosen.
    pub count: u32,
    /// Positions of a block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// So many blocks up to the token's own are chosen whatever their score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub local: u32,
    /// A [`State::Cache`](crate::State::Cache) of keys without values, of tokens or of blocks.
    pub state: StateId,
}

/// Where keys and values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// From the tokens of this run alone.
    Given {
        /// `heads_kv` of `key_len`.
        key: ValueId,
        /// `heads_kv` of `value_len`.
        value: ValueId,
    },
    /// From these tokens and those of earlier runs; these are kept for later ones. Operations with the
    /// same keys and values may have one state, where they are kept once.
    Cached {
        /// `heads_kv` of `key_len`.
        key: ValueId,
        /// `heads_kv` of `value_len`.
        value: ValueId,
        /// A [`State::Cache`](crate::State::Cache) of all tokens.
        state: StateId,
    },
    /// What an encoder stored.
    Stored {
        /// A [`State::Stored`](crate::State::Stored).
        state: StateId,
    },
}

/// Which tokens of its sequence one sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mask {
    /// All.
    All,
    /// Those up to its own position.
    Causal,
    /// Of these the last `n`, itself included.
    Window(u32),
    /// Of these the ones in the same chunk of `n` positions.
    Chunk(u32),
    /// Those whose distance is at most `n / 2`, on both sides.
    Around(u32),
}

impl Mask {
    /// Whether it is a window.
    pub fn is_window(self) -> bool {
        matches!(self, Self::Window(_))
    }
}

/// What is added to the score of a query at position `i` and a key at position `j`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionBias {
    /// Nothing.
    #[default]
    None,
    /// `-slope |i - j|`, where the slopes of `n` heads, with `p` the greatest power of 2 that is not
    /// above `n`, are `2^(-max (h + 1) / p)` for `h < p`, else `2^(-max (2 (h - p) + 1) / (2 p))`
    /// (ALiBi).
    Slopes {
        /// The `max` of the formula, usually 8.
        max: f32,
    },
    /// A number per head for each bucket of distances: a weight `[heads, buckets]` (T5).
    Buckets {
        /// The numbers.
        weight: WeightId,
        /// Distance from which all are in the last bucket.
        max_distance: u32,
        /// Whether there are buckets for later tokens.
        both_sides: bool,
    },
}

impl PositionBias {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}
