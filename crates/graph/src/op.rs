//! The operations of a graph.
//!
//! A value is a matrix of floats, one row for each token (or for each of something else, see
//! [`Rows`](crate::Rows)); its width is a number. Where a value is "of heads", a row holds the heads
//! one after the other, each of the same length.

use serde::{Deserialize, Serialize};

use crate::raw::{StateId, ValueId, WeightId};
use crate::rotation::Rotation;

/// One operation. It makes one value of those before it.
///
/// Shapes of weights are those of the tensor directory, fastest dimension first. All sums are over
/// the width of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// The features that are given to an encoder, one row for each frame.
    Features {
        /// Numbers of a frame.
        width: u32,
    },
    /// Rows of a table `[width, count]`, looked up by a number that each token has.
    Embed {
        /// The table.
        table: WeightId,
        /// Which number.
        index: Index,
    },
    /// `x W (+ bias)`: a matrix `[width of x, width of the result]`.
    Product {
        /// What is multiplied.
        x: ValueId,
        /// The matrix.
        weight: WeightId,
        /// Added to each row: `[width of the result]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<WeightId>,
    },
    /// The same with a matrix for each head: `[length of a head of x, length in the result, heads]`.
    HeadProduct {
        /// What is multiplied, of heads.
        x: ValueId,
        /// The matrices.
        weight: WeightId,
    },
    /// Each of `groups` equal parts of a row is brought to a mean of 0 and a variance of 1, or to a
    /// mean square of 1, then multiplied by a weight and added to a bias. Weight and bias are for a
    /// whole row, or shared by all parts.
    Norm {
        /// What is normed.
        x: ValueId,
        /// What is made 1.
        kind: NormKind,
        /// Added to the variance or mean square before the root is taken.
        epsilon: f32,
        /// Parts that are normed each for itself; 1 for a whole row.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: u32,
        /// `[width]` in all, or `[width / groups]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<WeightId>,
        /// As the weight.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<WeightId>,
    },
    /// The sum of two values.
    Add {
        /// One.
        a: ValueId,
        /// The other.
        b: ValueId,
    },
    /// The product of two values, number by number. `b` may have fewer numbers in a row: then each
    /// of them multiplies one of as many equal parts of the row of `a`.
    Multiply {
        /// One.
        a: ValueId,
        /// The other.
        b: ValueId,
    },
    /// Each row plus a weight `[width]`.
    AddWeight {
        /// What is added to.
        x: ValueId,
        /// What is added.
        weight: WeightId,
    },
    /// Each row times a weight `[width]`; by a weight `[width, n]` it becomes `n` rows beside each
    /// other, in one row of `n width` numbers. Of a weight of fewer numbers each multiplies one of as
    /// many equal parts of the row.
    MultiplyWeight {
        /// What is multiplied.
        x: ValueId,
        /// The factors.
        weight: WeightId,
    },
    /// `a w + b (1 - w)`, with a weight `[width]`.
    Mix {
        /// What there is of with a weight of 1.
        a: ValueId,
        /// What there is of with a weight of 0.
        b: ValueId,
        /// The shares of `a`.
        weight: WeightId,
    },
    /// All numbers times a factor.
    Scale {
        /// What is multiplied.
        x: ValueId,
        /// The factor.
        factor: f32,
    },
    /// All numbers plus a number.
    AddNumber {
        /// What is added to.
        x: ValueId,
        /// What is added.
        number: f32,
    },
    /// Each row times `scale ln(floor((position + offset) / length) + 1) + 1`: what sharpens attention
    /// over long contexts.
    ScaleByPosition {
        /// What is multiplied.
        x: ValueId,
        /// What positions are counted from: 0 or 1.
        offset: u32,
        /// Positions between two steps of the factor.
        length: u32,
        /// How much the factor grows.
        scale: f32,
    },
    /// No number below `-bound` or above `bound`.
    Clamp {
        /// What is bounded.
        x: ValueId,
        /// The bound.
        bound: f32,
    },
    /// `cap tanh(x / cap)`.
    SoftCap {
        /// What is bounded.
        x: ValueId,
        /// The bound.
        cap: f32,
    },
    /// A function of each number.
    Activate {
        /// Where it is applied.
        x: ValueId,
        /// Which.
        function: Function,
    },
    /// The numbers of each of `groups` equal parts of a row as shares: `exp(x)` divided by the sum of all.
    Softmax {
        /// What becomes shares.
        x: ValueId,
        /// Equal parts of a row; 1 for a whole row.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: u32,
    },
    /// `function(gate) up`, as the middle of a feed-forward network with a gate.
    Gate {
        /// What goes through the function.
        gate: ValueId,
        /// What is multiplied.
        up: ValueId,
        /// Which function.
        function: GateFunction,
    },
    /// Of each of `groups` equal parts of a row the numbers from `start` on.
    Slice {
        /// Where they are taken from.
        x: ValueId,
        /// Equal parts of a row, such as heads; 1 for a whole row.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: u32,
        /// The first number of a part.
        start: u32,
        /// How many of a part.
        len: u32,
    },
    /// Rows beside each other: each of `groups` equal parts of a row of the result has that of `a`,
    /// then that of `b`.
    Join {
        /// What comes first.
        a: ValueId,
        /// What follows.
        b: ValueId,
        /// Equal parts of a row, such as heads; 1 for a whole row.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: u32,
        /// Whether `b` is one part, which all share.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
    /// The sum of each of `groups` equal parts of a row.
    Sum {
        /// What is added up.
        x: ValueId,
        /// Equal parts of a row, such as heads; 1 for a whole row.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: u32,
    },
    /// Rotates pairs of numbers of each head by angles that grow with the position.
    Rotate {
        /// Queries or keys, of heads.
        x: ValueId,
        /// Heads of a row.
        heads: u32,
        /// By how much.
        rotation: Rotation,
    },
    /// For each token and head, the mean of values, weighted by the softmax of query times keys.
    Attention(Attention),
    /// Which tokens, or blocks of them, each token is to look at: see [`Choose`].
    Choose(Choose),
    /// Puts keys and values of an encoder where a decoder finds them; the result is `key`.
    Store {
        /// Keys, of heads.
        key: ValueId,
        /// Values, of heads.
        value: ValueId,
        /// Where: a [`State::Stored`](crate::State::Stored).
        state: StateId,
    },
    /// A gated network for each of several experts; each token goes through those with the best scores.
    Experts(Box<Experts>),
    /// Each column with its last values before a token: `y[t] = bias + sum_i w[i] x[t - (kernel - 1) + i]`,
    /// with 0 before the first token; a weight `[kernel, width]`, or `[kernel, 1, width]`.
    CausalConvolution {
        /// What is convolved.
        x: ValueId,
        /// The kernels.
        weight: WeightId,
        /// Added: `[width]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<WeightId>,
        /// The last `kernel - 1` rows: a [`State::Rows`](crate::State::Rows).
        state: StateId,
    },
    /// A convolution over frames: `y[t] = bias + sum over i, c of w[i, c] x[stride t - (kernel - 1)/2 + i, c]`,
    /// with 0 beyond the ends; a weight `[kernel, width, width of the result]`, the kernel odd. There
    /// are `ceil(rows / stride)` rows in the result.
    Convolution {
        /// What is convolved.
        x: ValueId,
        /// The kernels.
        weight: WeightId,
        /// Added: `[width of the result]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<WeightId>,
        /// Frames between two rows of the result.
        stride: u32,
    },
    /// The row of the token before in the same sequence; 0 for the first.
    Shift {
        /// What is looked at.
        x: ValueId,
        /// The last row: a [`State::Rows`](crate::State::Rows).
        state: StateId,
    },
    /// State spaces of Mamba: see [`Scan`].
    Scan(Scan),
    /// The recurrence of RWKV: see [`Wkv`].
    Wkv(Wkv),
    /// Attention with a state in place of a cache: see [`LinearAttention`].
    LinearAttention(LinearAttention),
    /// The rows that the caller wants to know the result of.
    Select {
        /// What they are taken from.
        x: ValueId,
    },
    /// One row for each sequence, of the rows of its tokens, or of those whose result is asked for; 0
    /// if there are none.
    Pool {
        /// What is pooled.
        x: ValueId,
        /// How.
        kind: Pooling,
    },
}

/// The number of a token by which a table is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Its id.
    Token,
    /// Its position in the sequence, from 0.
    Position,
    /// The number of the row: of frames, which have no sequences.
    Row,
    /// 0 for all.
    Zero,
}

/// What a norm makes 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    /// The variance, and the mean 0: `(x - mean) / sqrt(variance + epsilon)`.
    Variance,
    /// The mean square: `x / sqrt(mean(x^2) + epsilon)`.
    MeanSquare,
    /// The length: `x / max(sqrt(sum(x^2)), epsilon)`.
    Length,
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `x (1 + erf(x / sqrt(2))) / 2`.
    Gelu,
    /// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
    GeluTanh,
    /// `x / (1 + exp(-1.702 x))`.
    GeluQuick,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0)^2`.
    ReluSquared,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `ln(1 + exp(x))`.
    Softplus,
    /// `exp(x)`.
    Exp,
    /// `exp(-exp(x))`.
    ExpNegExp,
    /// `x`, or below 0 `exp(x) - 1`.
    Elu,
}

/// The function of a gate, and what it does to the other side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateFunction {
    /// `function(gate) up`.
    Plain(Function),
    /// As in gpt-oss: with `g = min(gate, limit)` and `u` being `up` between `-limit` and `limit`,
    /// `g / (1 + exp(-alpha g)) (u + 1)`.
    Clamped {
        /// Steepness.
        alpha: f32,
        /// Bound.
        limit: f32,
    },
    /// As in Kimi K3: `beta tanh(gate / beta) / (1 + exp(-gate)) u`, where `u` is
    /// `linear tanh(up / linear)`, or `up` without `linear`.
    Situ {
        /// Bound of the gate.
        beta: f32,
        /// Bound of what is multiplied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        linear: Option<f32>,
    },
    /// `function(min(gate, limit)) u`, with `u` being `up` between `-limit` and `limit`.
    Bounded {
        /// The function.
        function: Function,
        /// Bound.
        limit: f32,
    },
    /// `min(function(gate), limit) u`, with the same `u`.
    BoundedAfter {
        /// The function.
        function: Function,
        /// Bound.
        limit: f32,
    },
}

impl GateFunction {
    /// What a number goes through where there is nothing to be multiplied.
    pub fn of_gate(self) -> Function {
        match self {
            Self::Plain(function)
            | Self::Bounded { function, .. }
            | Self::BoundedAfter { function, .. } => function,
            Self::Clamped { .. } | Self::Situ { .. } => Function::Silu,
        }
    }
}

impl From<Function> for GateFunction {
    fn from(function: Function) -> Self {
        Self::Plain(function)
    }
}

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
}

/// The blocks of positions whose keys fit the query of a token best, of those up to its own.
///
/// The score of a position is the sum of `weight max(q k, 0)` over the heads, or, without weights, `q k`
/// of each head for itself; that of a block is the best of its positions. Of each head, or of all
/// together, the result has the numbers of the best `count` blocks, the lower number first among equals,
/// then -1 for as many as there are too few.
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
    /// Blocks that are chosen.
    pub count: u32,
    /// Positions of a block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub block: u32,
    /// So many blocks up to the token's own are chosen whatever their score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub local: u32,
    /// A [`State::Cache`](crate::State::Cache) of keys without values.
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
        /// A [`State::Cache`](crate::State::Cache).
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
    pub(crate) fn is_window(self) -> bool {
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

/// Networks of which each token goes through a few.
///
/// Scores become weights (`gating`); the best `used` are taken, by weight plus `selection_bias`, in
/// the best groups only if there are groups; the weights of those taken are made to sum to 1 if
/// `normalize`, and multiplied by `scale`. The result is the weighted sum of `down(gated(gate x, up x))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experts {
    /// What goes in.
    pub x: ValueId,
    /// A score for each expert.
    pub scores: ValueId,
    /// Experts for each token.
    pub used: u32,
    /// How scores become weights.
    pub gating: Gating,
    /// Added to the weights where the best are looked for: `[experts]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_bias: Option<WeightId>,
    /// Groups that the experts form; 1 for none.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Groups for each token: those whose best experts weigh most.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups_used: u32,
    /// Experts whose weights are summed to compare groups: those of a group that weigh most.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub group_best: u32,
    /// Whether the weights of a token are made to sum to 1.
    pub normalize: bool,
    /// Factor of the weights.
    pub scale: f32,
    /// Whether the weights multiply what goes in instead of what comes out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weigh_input: bool,
    /// `[width, inner, experts]`; without, `up` alone goes through the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<WeightId>,
    /// `[width, inner, experts]`; or `[width, 2 inner, experts]` with the gate in the first half.
    pub up: WeightId,
    /// `[inner, width of the result, experts]`.
    pub down: WeightId,
    /// `[inner, experts]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_bias: Option<WeightId>,
    /// `[inner, experts]`, or twice as wide as `up` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_bias: Option<WeightId>,
    /// `[width of the result, experts]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_bias: Option<WeightId>,
    /// Factors of the weights, for each expert: `[experts]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scales: Option<WeightId>,
    /// Experts in a row that have the same networks, of which there are the fewer.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub share: u32,
    /// What is between.
    pub function: GateFunction,
}

/// How the scores of experts become weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// The sigmoid of each.
    Sigmoid,
    /// Softmax over those taken, which are taken by score.
    SoftmaxOfUsed,
    /// Of those taken one after the other by score, each has its share in the softmax over those of
    /// the rest with a score `s` that is close to its own, `b`: `b - s <= margin max(|s|, b)`
    /// (SparseMixer, arXiv 2409.12136).
    SoftmaxOfClose {
        /// How close.
        margin: f32,
    },
}

/// State spaces: for each head `h`, number `i` of it and number `n` of the state,
/// `s = exp(dt[h] a[n, h]) s + dt[h] x[h, i] b[g, n]`, and `y[h, i] = sum_n s c[g, n] + d[h] x[h, i]`,
/// where `g` is the group of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Input, of heads.
    pub x: ValueId,
    /// Time steps, above 0: one for each head.
    pub dt: ValueId,
    /// What goes into the state: for each group a number per number of the state.
    pub b: ValueId,
    /// What is read of the state, as `b`.
    pub c: ValueId,
    /// Decay, below 0: `[state numbers or 1, heads]`.
    pub a: WeightId,
    /// What goes past the state: `[heads]`, or `[1, heads]`.
    pub d: WeightId,
    /// Equal groups of heads that share `b` and `c`.
    pub groups: u32,
    /// A [`State::Floats`](crate::State::Floats) of heads, length of a head, state numbers.
    pub state: StateId,
}

/// The recurrences of RWKV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "version", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wkv {
    /// Version 4, for each column: with `w = -exp(decay)`, a numerator, a denominator and their
    /// common exponent as state, `y = (n + exp(first + k) v) / (d + exp(first + k))`, then
    /// `n = exp(w) n + exp(k) v` and `d = exp(w) d + exp(k)`.
    V4 {
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// `[width]`.
        decay: WeightId,
        /// `[width]`.
        first: WeightId,
        /// A [`State::Floats`](crate::State::Floats): numerators, denominators, exponents, which
        /// begin as 0, 0 and -1e38.
        state: StateId,
    },
    /// Version 6, for each head with a matrix `S` as state: `y_j = sum_i r_i (first_i k_i v_j + S_ij)`,
    /// then `S_ij = w_i S_ij + k_i v_j`.
    V6 {
        /// Receptance, of heads.
        r: ValueId,
        /// Decay, between 0 and 1.
        w: ValueId,
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// `[width]` in all.
        first: WeightId,
        /// Length of a head.
        head_len: u32,
        /// A [`State::Floats`](crate::State::Floats) of width times length of a head.
        state: StateId,
    },
    /// Version 7, for each head with a matrix `S` as state, one row per value:
    /// `S_ij = w_j S_ij + v_i k_j + (sum_l S_il a_l) b_j`, then `y_i = sum_j S_ij r_j`.
    V7 {
        /// Receptance, of heads.
        r: ValueId,
        /// Decay, between 0 and 1.
        w: ValueId,
        /// Keys.
        k: ValueId,
        /// Values.
        v: ValueId,
        /// What is taken out of the state.
        a: ValueId,
        /// Where it is put.
        b: ValueId,
        /// Length of a head.
        head_len: u32,
        /// A [`State::Floats`](crate::State::Floats) of width times length of a head.
        state: StateId,
    },
}

/// Attention with a state in place of a cache: the gated delta rule, and linear attention with a decay.
///
/// For each head with a matrix `S` as state: `S_ij = w_i S_ij`, then with a rate
/// `S_ij = S_ij + rate k_i (v_j - sum_l k_l S_lj)`, without one `S_ij = S_ij + k_i v_j`, then
/// `y_j = sum_i q_i S_ij`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearAttention {
    /// Queries `q`, of heads.
    pub query: ValueId,
    /// Keys `k`, as long as queries.
    pub key: ValueId,
    /// Values `v`, of heads.
    pub value: ValueId,
    /// Heads of all of them.
    pub heads: u32,
    /// What stays of the state, `w`.
    pub decay: Decay,
    /// How much of a value replaces what the state has for its key: a number for each head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ValueId>,
    /// A [`State::Floats`](crate::State::Floats) of heads, length of a key, length of a value.
    pub state: StateId,
}

/// What stays of the state of linear attention from one token to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// A factor for each head, or for each number of the keys.
    Value(ValueId),
    /// `exp(-factor slope)`, with the slopes of [`PositionBias::Slopes`].
    Slopes {
        /// The `max` of the formula.
        max: f32,
        /// What slopes are multiplied by.
        factor: f32,
    },
}

/// How rows of tokens become one for a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token.
    First,
    /// That of the last token.
    Last,
}

const fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
