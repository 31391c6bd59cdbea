//! Rotary position embedding, every number resolved.

use serde::{Deserialize, Serialize};

use crate::raw::WeightId;

/// How pairs of numbers of a head are rotated.
///
/// Pair `i` of `count / 2` is rotated by `position base^(-2 i / count)`, divided by its factor if
/// there are factors, and stretched. The position is that of the first token of its block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    /// Which numbers are a pair.
    pub pairs: Pairs,
    /// The first number of a head that is rotated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u32,
    /// Numbers that are rotated, even.
    pub count: u32,
    /// Base of the frequencies.
    pub base: f32,
    /// How positions are stretched.
    #[serde(default, skip_serializing_if = "Stretch::is_none")]
    pub stretch: Stretch,
    /// Factor of the rotated numbers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub magnitude: f32,
    /// What frequencies are divided by.
    #[serde(default, skip_serializing_if = "Factors::is_none")]
    pub factors: Factors,
    /// Tokens of a block, which rotate alike.
    #[serde(default = "single", skip_serializing_if = "is_single")]
    pub block: u32,
    /// Whether angles are those the other way round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
}

impl Rotation {
    /// The same with the bounds of YaRN as they are.
    pub fn unrounded(mut self) -> Self {
        if let Stretch::Yarn { rounded, .. } = &mut self.stretch {
            *rounded = false;
        }
        self
    }

    /// The same with positions as they are.
    pub fn plain(self) -> Self {
        Self { stretch: Stretch::None, magnitude: 1.0, factors: Factors::None, ..self }
    }
}

/// Which numbers of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// Number `2 i` with number `2 i + 1` (GPT-J, llama as Meta wrote it).
    Neighbours,
    /// Number `i` with number `i + count / 2` (GPT-NeoX).
    Halves,
}

/// How angles are changed for contexts longer than the one that a model was trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stretch {
    /// Not.
    #[default]
    None,
    /// Divided by a factor.
    Linear(f32),
    /// YaRN (arXiv 2309.00071): pairs that turn less than `beta_slow` times within the original
    /// context are divided by the factor, those that turn more than `beta_fast` times are not, with
    /// a ramp between. With `d(b) = count ln(original / (2 pi b)) / (2 ln(base))`, the share that is
    /// not divided is `1 - clamp((i - low) / (high - low), 0, 1)`, where `low` is `d(beta_fast)`, but 0
    /// or more, `high` is `d(beta_slow)`, but `count - 1` or less, and their difference 0.001 or more.
    Yarn {
        /// The factor.
        factor: f32,
        /// Context length before.
        original: u32,
        /// Turns above which nothing changes.
        beta_fast: f32,
        /// Turns below which all is divided.
        beta_slow: f32,
        /// Whether `d(beta_fast)` is rounded down first, and `d(beta_slow)` up.
        rounded: bool,
    },
}

impl Stretch {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Weights `[count / 2]` that frequencies are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Factors {
    /// There are none.
    #[default]
    None,
    /// The same for every context. There may be more, of which the first count.
    One(WeightId),
    /// One or the other by the length that the context is made for.
    ByContext {
        /// For contexts up to `original`.
        short: WeightId,
        /// For longer ones.
        long: WeightId,
        /// The length.
        original: u32,
    },
}

impl Factors {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

const fn one() -> f32 {
    1.0
}

fn is_one(number: &f32) -> bool {
    *number == 1.0
}

const fn single() -> u32 {
    1
}

fn is_single(number: &u32) -> bool {
    *number == 1
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
