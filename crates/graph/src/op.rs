//! The operations of a graph.
//!
//! A value is a matrix of floats, one row for each token (or for each of something else, see
//! [`Rows`](crate::Rows)); its width is a number. Where a value is "of heads", a row holds the heads
//! one after the other, each of the same length.

mod attention;
mod compress;
mod experts;
mod ngrams;
mod numbered;
mod recurrent;

pub use attention::{Among, Attention, Blocks, Choose, Mask, Memory, PositionBias};
pub use compress::Compress;
pub use experts::{Experts, Gating};
pub use ngrams::{Bucket, Ngrams};
pub use numbered::{Mark, NumberedProduct};
pub use recurrent::{Decay, LinearAttention, Scan, Wkv};
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
    /// Rows of a table, looked up by the last tokens: see [`Ngrams`].
    Ngrams(Ngrams),
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
    /// A number for each token: see [`Mark`].
    Mark(Mark),
    /// The same with one of several matrices: see [`NumberedProduct`].
    NumberedProduct(NumberedProduct),
    /// The same with a matrix for each head: `[length of a head of x, length in the result, heads]`, or
    /// all of them one below the other, `[length of a head of x, length in the result times heads]`.
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
    /// Each row as a matrix of as many rows as columns, made to share evenly (Sinkhorn and Knopp): the
    /// softmax of each of its rows, plus `epsilon`; then each column is divided by its sum plus
    /// `epsilon`, and after that, `iterations - 1` times, each row and then each column.
    Sinkhorn {
        /// The matrices, row after row.
        x: ValueId,
        /// How often columns are divided.
        iterations: u32,
        /// Added to shares and to sums.
        epsilon: f32,
    },
    /// New parts of a row from its equal parts: part `d` is the sum over the parts `s` of `x` of
    /// `shares[s, d]` times part `s`.
    Combine {
        /// What has parts.
        x: ValueId,
        /// For each part of `x` a number for each part of the result.
        shares: ValueId,
        /// Equal parts of a row of `x`.
        parts: u32,
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
    /// Several tokens in one row: see [`Compress`].
    Compress(Compress),
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
    /// Each column with its last values before a token:
    /// `y[t] = bias + sum_i w[i] x[t - (kernel - 1 - i) dilation]`, with 0 before the first token; a weight
    /// `[kernel, width]`, or `[kernel, 1, width]`.
    CausalConvolution {
        /// What is convolved.
        x: ValueId,
        /// The kernels.
        weight: WeightId,
        /// Added: `[width]`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<WeightId>,
        /// Tokens between two that are looked at, and one.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        dilation: u32,
        /// The last `(kernel - 1) dilation` rows: a [`State::Rows`](crate::State::Rows).
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// Its id.
    Token,
    /// Its id, or the one beside it here: tokens and those that stand in for them, in ascending order.
    Replaced(Vec<(u32, u32)>),
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
    /// `sqrt(max(|x|, 1e-6))` with the sign of `x`, or 0 of 0.
    SignedRoot,
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

pub(crate) const fn one() -> u32 {
    1
}

pub(crate) fn is_one(number: &u32) -> bool {
    *number == 1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
