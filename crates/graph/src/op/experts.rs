//! Experts, and how they are chosen.

use serde::{Deserialize, Serialize};

use super::{GateFunction, is_one, one};
use crate::raw::{ValueId, WeightId};

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
    /// The numbers of these, whatever their scores: `used` for each token. Of numbers that no expert has
    /// nothing comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ValueId>,
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
    /// The root of `ln(1 + exp(score))` of each.
    SqrtSoftplus,
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
