//! Operations with a state that is not a cache.

use serde::{Deserialize, Serialize};

use crate::raw::{StateId, ValueId, WeightId};

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
    /// `exp(-factor slope)`, with the slopes of [`Slopes`](super::PositionBias::Slopes).
    Slopes {
        /// The `max` of the formula.
        max: f32,
        /// What slopes are multiplied by.
        factor: f32,
    },
}
