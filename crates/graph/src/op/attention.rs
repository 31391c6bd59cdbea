//! Softmax attention.

use serde::{Deserialize, Serialize};

use super::{Operation, StateWrite};
use crate::cost::{CostScope, Work};
use crate::field::{is_default, is_one, one};
use crate::id::{StateId, ValueId, WeightId};
use crate::scope::{Result, Scope, equal, finite, invalid, nonzero, positive, product, require};
use crate::tensor::{RowDim, Shape, State};

/// Attends to keys and values by softmax, with grouped-query heads:
/// `y[h] = sum over j of softmax over j of (s[h, j]) v[j]`, `s[h, j] = cap(scale q[h] k[j]) + position_bias`.
///
/// Head `h` attends to head `floor(h heads_kv / heads)` of keys and values. `cap` is `soft_cap`.
///
/// - Inputs: `query` `[rows, heads key_len]`; `key` `[rows, heads_kv key_len]` and `value`
///   `[rows, heads_kv value_len]` in `kv`.
/// - Weights: `sinks` `[heads]`, optional; buckets of the position bias.
/// - State: a `kv_cache` or `encoder_kv` of `kv`; the `kv_cache` of compressed blocks.
/// - Output: `[rows, heads value_len]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attention {
    /// Queries.
    pub query: ValueId,
    /// Source of keys and values.
    pub kv: KvSource,
    /// Number of query heads.
    pub heads: u32,
    /// Number of key and value heads.
    pub heads_kv: u32,
    /// Length of a query or key head.
    pub key_len: u32,
    /// Length of a value head.
    pub value_len: u32,
    /// Factor of the scores.
    pub scale: f32,
    /// Positions that a token may attend to.
    pub mask: Mask,
    /// Bias of the scores by distance.
    #[serde(default, skip_serializing_if = "is_default")]
    pub position_bias: PositionBias,
    /// Logit soft-capping of the scores: `soft_cap tanh(score / soft_cap)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_cap: Option<f32>,
    /// Restriction to selected blocks (block-sparse attention).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<BlockSelection>,
    /// Compressed blocks that a token attends to in addition, within the same softmax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed: Option<CompressedKv>,
    /// Attention sinks: per head, the score of a virtual token with the value 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sinks: Option<WeightId>,
}

/// Blocks of positions that attention is restricted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockSelection {
    /// Block numbers, as [`TopkIndexer`](super::TopkIndexer) returns them. Negative numbers select nothing.
    pub indices: ValueId,
    /// Number of groups of a row of `indices`: key head `h` uses group `floor(h groups / heads_kv)`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Positions per block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// Whether a token also attends to the incomplete block of its own position.
    #[serde(default, skip_serializing_if = "is_default")]
    pub include_tail: bool,
}

/// Keys and values of compressed blocks. A token attends to blocks that end at or before its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressedKv {
    /// Keys, in the row of the last token of each block.
    pub key: ValueId,
    /// Values, in the row of the last token of each block.
    pub value: ValueId,
    /// KV cache with one row per block.
    pub state: StateId,
    /// Numbers of the blocks that a token is restricted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indices: Option<ValueId>,
}

/// Source of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvSource {
    /// Tokens or frames of the batch only.
    Batch {
        /// Keys.
        key: ValueId,
        /// Values.
        value: ValueId,
    },
    /// All tokens of the sequence, through a KV cache. Operations with the same keys and values may share it.
    Cached {
        /// Keys.
        key: ValueId,
        /// Values.
        value: ValueId,
        /// KV cache with one row per token.
        state: StateId,
    },
    /// Output of the encoder (cross-attention).
    Encoder {
        /// Keys and values that [`KvStore`](super::KvStore) wrote.
        state: StateId,
    },
}

/// Positions `j` that a token at position `i` may attend to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mask {
    /// All positions.
    Full,
    /// `j <= i`.
    Causal,
    /// `i - n < j <= i`.
    SlidingWindow(u32),
    /// `j <= i`, in the same chunk of `n` positions.
    Chunked(u32),
    /// `|i - j| <= n / 2`.
    SymmetricWindow(u32),
    /// `i - n < j`: a sliding window, and all later positions.
    LookaheadWindow(u32),
}

impl Mask {
    /// Whether the mask is a sliding window.
    pub fn is_sliding_window(self) -> bool {
        matches!(self, Self::SlidingWindow(_) | Self::LookaheadWindow(_))
    }

    /// Returns the number of pairs of a query and a key.
    pub(super) fn pairs(self, scope: &CostScope<'_>) -> u64 {
        let (rows, past) = (scope.rows, scope.workload.past);
        let all = match scope.output.rows {
            RowDim::Frames { .. } => rows,
            _ => past.saturating_add(rows),
        };
        // The token in the middle of the batch has the average number of keys.
        let causal = past.saturating_add(rows.div_ceil(2));
        let keys = match self {
            Self::Full => all,
            Self::Causal => causal,
            Self::SlidingWindow(n) | Self::Chunked(n) => causal.min(n.into()),
            Self::SymmetricWindow(n) => all.min(u64::from(n) + 1),
            Self::LookaheadWindow(n) => all.min(rows.saturating_add(n.into())),
        };
        rows.saturating_mul(keys)
    }
}

/// Bias of the score of a query at position `i` and a key at position `j`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionBias {
    /// None.
    #[default]
    None,
    /// ALiBi: `-slope |i - j|`. With `p` the largest power of 2 that is at most `heads`, the slope of head
    /// `h < p` is `2^(-max_bias (h + 1) / p)`, of others `2^(-max_bias (2 (h - p) + 1) / (2 p))`.
    Alibi {
        /// Exponent of the smallest slope, usually 8.
        max_bias: f32,
    },
    /// Relative position bias (T5): an element of a weight `[heads, buckets]` by the bucket of the distance.
    RelativeBuckets {
        /// Biases.
        weight: WeightId,
        /// Distance from which all are in the last bucket.
        max_distance: u32,
        /// Whether later tokens have buckets of their own.
        bidirectional: bool,
    },
}

impl Operation for Attention {
    fn inputs(&self) -> Vec<ValueId> {
        let mut inputs = vec![self.query];
        match self.kv {
            KvSource::Batch { key, value } | KvSource::Cached { key, value, .. } => {
                inputs.extend([key, value]);
            }
            KvSource::Encoder { .. } => {}
        }
        inputs.extend(self.selection.map(|selection| selection.indices));
        if let Some(CompressedKv { key, value, indices, .. }) = self.compressed {
            inputs.extend([key, value]);
            inputs.extend(indices);
        }
        inputs
    }

    fn weights(&self) -> Vec<WeightId> {
        let buckets = match self.position_bias {
            PositionBias::RelativeBuckets { weight, .. } => Some(weight),
            PositionBias::None | PositionBias::Alibi { .. } => None,
        };
        buckets.into_iter().chain(self.sinks).collect()
    }

    fn states(&self) -> Vec<StateId> {
        let state = match self.kv {
            KvSource::Batch { .. } => None,
            KvSource::Cached { state, .. } | KvSource::Encoder { state } => Some(state),
        };
        state.into_iter().chain(self.compressed.map(|compressed| compressed.state)).collect()
    }

    fn writes(&self) -> Vec<StateWrite> {
        let cache = match self.kv {
            KvSource::Cached { key, value, state } => Some((state, (key, value))),
            KvSource::Batch { .. } | KvSource::Encoder { .. } => None,
        };
        let compressed = self.compressed.map(|blocks| (blocks.state, (blocks.key, blocks.value)));
        let write = |(state, key_value)| StateWrite { state, key_value: Some(key_value) };
        cache.into_iter().chain(compressed).map(write).collect()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let Self { heads, heads_kv, key_len, value_len, .. } = *self;
        let query = scope.input(self.query)?;
        nonzero("heads", heads)?;
        nonzero("heads_kv", heads_kv)?;
        require(heads % heads_kv == 0, || {
            format!("`heads` is {heads}; expected a multiple of `heads_kv`, which is {heads_kv}")
        })?;
        let width = |heads: u32, len: u32| product(heads.into(), len.into());
        equal("width of the queries", query.width.into(), width(heads, key_len)?)?;
        let widths = [width(heads_kv, key_len)?, width(heads_kv, value_len)?];
        self.check_kv(scope, query, widths)?;
        self.position_bias.check(scope, heads)?;
        if let Some(selection) = self.selection {
            selection.check(scope, query, heads_kv)?;
        }
        if let Some(compressed) = self.compressed {
            require(matches!(self.kv, KvSource::Cached { .. }), || {
                "compressed blocks occur without a KV cache"
            })?;
            require(self.position_bias == PositionBias::None, || {
                "compressed blocks occur with a position bias"
            })?;
            compressed.check(scope, widths)?;
        }
        scope.optional_weight(self.sinks, &[heads.into()])?;
        if let Some(cap) = self.soft_cap {
            positive("soft_cap", cap)?;
        }
        Shape::new(query.rows, width(heads, value_len)?)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let mut pairs = self.mask.pairs(scope);
        if let Some(selection) = self.selection {
            let blocks = scope.width(selection.indices) / u64::from(selection.groups.max(1));
            let blocks = blocks.saturating_add(selection.include_tail.into());
            let positions = blocks.saturating_mul(selection.block.into());
            pairs = pairs.min(scope.rows.saturating_mul(positions));
        }
        if let Some(compressed) = self.compressed {
            let causal = Mask::Causal.pairs(scope) / scope.block(compressed.state);
            let selected = compressed.indices.map_or(u64::MAX, |indices| scope.width(indices));
            pairs = pairs.saturating_add(causal.min(scope.rows.saturating_mul(selected)));
        }
        let len = u64::from(self.key_len) + u64::from(self.value_len);
        Work::dense(pairs.saturating_mul(len).saturating_mul(self.heads.into()))
    }

    fn needs_whole_batch(&self) -> bool {
        let looks_ahead = match self.mask {
            Mask::Full | Mask::SymmetricWindow(_) | Mask::LookaheadWindow(_) => true,
            Mask::Causal | Mask::SlidingWindow(_) | Mask::Chunked(_) => false,
        };
        match self.kv {
            KvSource::Batch { .. } => true,
            KvSource::Cached { .. } => looks_ahead,
            KvSource::Encoder { .. } => false,
        }
    }
}

impl Attention {
    /// Checks keys, values and their state.
    fn check_kv(&self, scope: &Scope<'_>, query: Shape, widths: [u64; 2]) -> Result<()> {
        if let KvSource::Batch { key, value } | KvSource::Cached { key, value, .. } = self.kv {
            let (key, value) = (scope.input(key)?, scope.input(value)?);
            query.rows_equal(key)?;
            query.rows_equal(value)?;
            equal_widths("", [key.width, value.width], widths)?;
        }
        match self.kv {
            KvSource::Batch { .. } => {
                require(matches!(query.rows, RowDim::Tokens | RowDim::Frames { .. }), || {
                    format!("the queries have {} as rows; expected tokens or frames", query.rows)
                })
            }
            KvSource::Cached { state, .. } => match scope.state(state)? {
                State::KvCache { key_width, value_width, block: 1 } => {
                    equal_widths(" of the state", [key_width, value_width], widths)?;
                    is_of_tokens(query)
                }
                other => Err(invalid(format!("the state is {other}; expected a KV cache of tokens"))),
            },
            KvSource::Encoder { state } => match scope.state(state)? {
                State::EncoderKv { key_width, value_width } => {
                    equal_widths(" of the state", [key_width, value_width], widths)?;
                    is_of_tokens(query)
                }
                other => Err(invalid(format!("the state is {other}; expected an encoder KV store"))),
            },
        }
    }
}

impl BlockSelection {
    fn check(self, scope: &Scope<'_>, query: Shape, heads_kv: u32) -> Result<()> {
        let indices = scope.input(self.indices)?;
        query.rows_equal(indices)?;
        indices.group_len(self.groups)?;
        require(heads_kv.is_multiple_of(self.groups), || {
            format!("`groups` is {}; expected a divisor of `heads_kv`, which is {heads_kv}", self.groups)
        })?;
        nonzero("block", self.block)
    }
}

impl CompressedKv {
    fn check(self, scope: &Scope<'_>, widths: [u64; 2]) -> Result<()> {
        let (key, value) = (scope.token_input(self.key)?, scope.token_input(self.value)?);
        equal_widths("", [key.width, value.width], widths)?;
        match scope.state(self.state)? {
            State::KvCache { key_width, value_width, block: 2.. } => {
                equal_widths(" of the state", [key_width, value_width], widths)?;
            }
            other => {
                return Err(invalid(format!("the state is {other}; expected a KV cache of blocks")));
            }
        }
        self.indices.map_or(Ok(()), |indices| scope.token_input(indices).map(drop))
    }
}

impl PositionBias {
    fn check(self, scope: &Scope<'_>, heads: u32) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Alibi { max_bias } => finite("max_bias", max_bias),
            Self::RelativeBuckets { weight, .. } => {
                let [found, buckets] = scope.dims(weight)?;
                equal("number of heads of the position bias", found, heads.into())?;
                require(buckets >= 4, || {
                    format!("the position bias has {buckets} buckets; expected at least 4")
                })
            }
        }
    }
}

fn is_of_tokens(query: Shape) -> Result<()> {
    require(query.rows == RowDim::Tokens, || {
        format!("the queries have {} as rows; expected tokens", query.rows)
    })
}

/// Requires the widths of keys and values.
fn equal_widths(place: &str, found: [u32; 2], expected: [u64; 2]) -> Result<()> {
    equal(&format!("key width{place}"), found[0].into(), expected[0])?;
    equal(&format!("value width{place}"), found[1].into(), expected[1])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;
    use crate::tensor::State;

    fn shape(field: &str, value: Json) -> String {
        let mut op = json!({"op": "attention", "query": 0, "heads": 2, "heads_kv": 1, "key_len": 4,
            "value_len": 3, "kv": {"cached": {"key": 1, "value": 2, "state": 0}}, "scale": 0.5,
            "mask": "causal"});
        op[field] = value;
        let states = [
            State::kv_cache(4, 3),
            State::KvCache { key_width: 4, value_width: 3, block: 2 },
            State::Recurrent { len: 1 },
        ];
        Parts::new(&[8, 4, 3, 6], &[&[2], &[3, 4]]).with(&states).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let cached = |state: u32| json!({"cached": {"key": 1, "value": 2, "state": state}});
        let buckets =
            json!({"relative_buckets": {"weight": 1, "max_distance": 8, "bidirectional": true}});
        let cases = [
            ("sinks", json!(0), "tokens x 6"),
            ("sinks", json!(1), "the weight has shape [3, 4]; expected [2]"),
            ("mask", json!({"sliding_window": 4}), "tokens x 6"),
            ("heads_kv", json!(0), "`heads_kv` is 0; expected at least 1"),
            ("heads", json!(1), "the width of the queries is 8; expected 4"),
            ("kv", cached(3), "there is no state 3"),
            ("kv", cached(1), "expected a KV cache of tokens"),
            ("kv", cached(2), "the state is a recurrent state of 1 floats"),
            ("kv", json!({"batch": {"key": 1, "value": 1}}), "the value width is 4; expected 3"),
            ("soft_cap", json!(0.0), "`soft_cap` is 0; expected a number above 0"),
            ("selection", json!({"indices": 3, "groups": 2}), "`groups` is 2; expected a divisor"),
            ("selection", json!({"indices": 3, "block": 0}), "`block` is 0"),
            ("compressed", json!({"key": 1, "value": 2, "state": 1, "indices": 3}), "tokens x 6"),
            ("compressed", json!({"key": 1, "value": 2, "state": 0}), "expected a KV cache of blocks"),
            ("position_bias", json!({"alibi": {"max_bias": 8.0}}), "tokens x 6"),
            ("position_bias", buckets, "the number of heads of the position bias is 3; expected 2"),
        ];
        for (field, value, expected) in cases {
            let found = shape(field, value.clone());
            assert!(found.contains(expected), "{field} {value}: {found}");
        }
    }
}
