//! Mixture of experts.

use serde::{Deserialize, Serialize};

use super::{GluFunction, Operation};
use crate::cost::{CostScope, Work};
use crate::field::{is_default, is_one, one};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal, nonzero, not_negative, product, require};
use crate::tensor::Shape;

/// Routes each token through the feed-forward networks of its best experts (mixture of experts):
/// `y = sum over selected experts e of w[e] down[e](function(gate[e] x, up[e] x))`.
///
/// 1. The router logits become weights by `gating`.
/// 2. The best `experts_per_token` experts are selected by weight plus `selection_bias`, the lower number first
///    among equals. With groups, only experts of the best `groups_per_token` groups are candidates; the score of a
///    group is the sum of its best `group_top_k` experts.
/// 3. The weights of the selected experts are divided by their sum (`normalize_weights`), then multiplied by
///    `weights_scale` and `expert_scales`.
///
/// - Inputs: `x` `[rows, n]`; `router_logits` `[rows, experts]`; `expert_ids` `[rows, experts_per_token]`, optional.
/// - Weights, with `m = experts / experts_per_network`: `gate`, optional, and `up` `[n, inner, m]`; `down`
///   `[inner, o, m]`; biases `[inner, m]` and `[o, m]`, optional; `selection_bias` and `expert_scales` `[experts]`,
///   optional. Without `gate`, `up` may be `[n, 2 inner, m]` with the gate in its first half.
/// - Output: `[rows, o]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Input of the experts.
    pub x: ValueId,
    /// Logit of each expert.
    pub router_logits: ValueId,
    /// Number of selected experts.
    pub experts_per_token: u32,
    /// Numbers of the selected experts, whatever their logits (hash routing). Numbers that no expert has select
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_ids: Option<ValueId>,
    /// Function from router logits to weights.
    pub gating: Gating,
    /// Bias of the weights for the selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_bias: Option<WeightId>,
    /// Number of expert groups.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups: u32,
    /// Number of groups whose experts are candidates.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub groups_per_token: u32,
    /// Number of experts whose weights are summed to the score of a group.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub group_top_k: u32,
    /// Whether the weights of the selected experts are divided by their sum.
    pub normalize_weights: bool,
    /// Factor of the weights.
    pub weights_scale: f32,
    /// Whether the weight multiplies the input of an expert instead of its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub weight_before_ffn: bool,
    /// Gate projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<WeightId>,
    /// Up projections, or gate and up projections fused.
    pub up: WeightId,
    /// Down projections.
    pub down: WeightId,
    /// Bias of the gate projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_bias: Option<WeightId>,
    /// Bias of the up projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_bias: Option<WeightId>,
    /// Bias of the down projections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_bias: Option<WeightId>,
    /// Factor of the weight of each expert.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_scales: Option<WeightId>,
    /// Number of consecutive experts that share a network.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub experts_per_network: u32,
    /// Activation of the networks.
    pub function: GluFunction,
}

/// Function from router logits to expert weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gating {
    /// Softmax over all experts.
    Softmax,
    /// Sigmoid of each logit.
    Sigmoid,
    /// `sqrt(ln(1 + exp(logit)))`.
    SqrtSoftplus,
    /// Softmax over the selected experts, which are selected by logit.
    SoftmaxAfterTopk,
    /// SparseMixer (arXiv 2409.12136): experts are selected by logit, one after the other. The weight of an expert
    /// with logit `b` is its softmax over the experts not selected before it whose logit `s` is close:
    /// `b - s <= margin max(|s|, b)`.
    SparseMixer {
        /// Relative distance of logits that count as close.
        margin: f32,
    },
}

impl Operation for Moe {
    fn inputs(&self) -> Vec<ValueId> {
        [self.x, self.router_logits].into_iter().chain(self.expert_ids).collect()
    }

    fn weights(&self) -> Vec<WeightId> {
        let networks = [self.gate, Some(self.up), Some(self.down)];
        let biases = [self.gate_bias, self.up_bias, self.down_bias];
        let router = [self.selection_bias, self.expert_scales];
        networks.into_iter().chain(biases).chain(router).flatten().collect()
    }

    fn matrices(&self) -> Vec<WeightId> {
        self.gate.into_iter().chain([self.up, self.down]).collect()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let (x, logits) = (scope.input(self.x)?, scope.input(self.router_logits)?);
        self.function.check()?;
        x.rows_equal(logits)?;
        let [input, up, networks] = scope.dims(self.up)?;
        equal("width of the input", x.width.into(), input)?;
        let experts = product(networks, self.experts_per_network.into())?;
        equal("number of router logits", logits.width.into(), experts)?;
        if let Some(gate) = self.gate {
            scope.weight_is(gate, &[input, up, networks])?;
        }
        let [inner, output, _] = scope.dims(self.down)?;
        scope.weight_is(self.down, &[inner, output, networks])?;
        require(up == inner || (self.gate.is_none() && up == 2 * inner), || {
            format!("the up projections have width {up}; the down projections expect {inner}")
        })?;
        scope.optional_weight(self.selection_bias, &[experts])?;
        scope.optional_weight(self.expert_scales, &[experts])?;
        scope.optional_weight(self.gate_bias, &[inner, networks])?;
        scope.optional_weight(self.up_bias, &[up, networks])?;
        scope.optional_weight(self.down_bias, &[output, networks])?;
        if let Gating::SparseMixer { margin } = self.gating {
            not_negative("margin", margin)?;
        }
        self.check_selection(scope, x, experts)?;
        Shape::new(x.rows, output)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        let experts = scope.width(self.router_logits);
        let networks = (experts / u64::from(self.experts_per_network.max(1))).max(1);
        let selected = u64::from(self.experts_per_token);
        let elements = [self.gate, Some(self.up), Some(self.down)]
            .into_iter()
            .flatten()
            .map(|weight| scope.elements(weight))
            .fold(0, u64::saturating_add);
        Work {
            multiply_adds: scope.rows.saturating_mul(elements / networks * selected),
            weight_share: (scope.rows.saturating_mul(selected) as f64 / networks as f64).min(1.0),
        }
    }
}

impl Moe {
    /// Checks the attributes of the router.
    fn check_selection(&self, scope: &Scope<'_>, x: Shape, experts: u64) -> Result<()> {
        let selected = u64::from(self.experts_per_token);
        require((1..=experts).contains(&selected), || {
            format!("`experts_per_token` is {selected}; expected 1 to {experts}")
        })?;
        if let Some(ids) = self.expert_ids {
            let ids = scope.input(ids)?;
            x.rows_equal(ids)?;
            equal("width of `expert_ids`", ids.width.into(), selected)?;
        }
        let (groups, candidates) = (self.groups, self.groups_per_token);
        require(groups > 0 && experts.is_multiple_of(u64::from(groups)), || {
            format!("`groups` is {groups}; expected a divisor of the {experts} experts")
        })?;
        require((1..=groups).contains(&candidates), || {
            format!("`groups_per_token` is {candidates}; expected 1 to {groups}")
        })?;
        let most = experts / u64::from(groups) * u64::from(candidates);
        require(selected <= most, || {
            format!("`experts_per_token` is {selected}; the selected groups have {most} experts")
        })?;
        nonzero("group_top_k", self.group_top_k)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::op::tests::Parts;

    fn shape(field: &str, value: Json) -> String {
        let mut op = json!({"op": "moe", "x": 0, "router_logits": 1, "experts_per_token": 2,
            "gating": "softmax", "normalize_weights": true, "weights_scale": 1.0, "up": 0, "down": 1,
            "function": {"plain": "silu"}});
        op[field] = value;
        let weights: [&[u64]; 4] = [&[8, 6, 3], &[6, 8, 3], &[2], &[7, 8, 3]];
        Parts::new(&[8, 3, 4], &weights).shape(op)
    }

    #[test]
    fn fields_are_checked() {
        let cases = [
            ("gate", json!(0), "tokens x 8"),
            ("experts_per_token", json!(4), "`experts_per_token` is 4; expected 1 to 3"),
            ("experts_per_token", json!(0), "`experts_per_token` is 0; expected 1 to 3"),
            ("router_logits", json!(0), "the number of router logits is 8; expected 3"),
            ("down", json!(3), "the up projections have width 6; the down projections expect 7"),
            ("experts_per_network", json!(2), "the number of router logits is 3; expected 6"),
            ("experts_per_network", json!(0), "the number of router logits is 3; expected 0"),
            ("expert_ids", json!(9), "value 9 is not computed before this operation"),
            ("expert_ids", json!(2), "the width of `expert_ids` is 4; expected 2"),
            ("expert_scales", json!(2), "the weight has shape [2]; expected [3]"),
            ("gating", json!({"sparse_mixer": {"margin": -1.0}}), "`margin` is -1"),
            ("groups", json!(2), "`groups` is 2; expected a divisor of the 3 experts"),
            ("groups", json!(3), "`experts_per_token` is 2; the selected groups have 1 experts"),
            ("groups_per_token", json!(2), "`groups_per_token` is 2; expected 1 to 1"),
            ("group_top_k", json!(0), "`group_top_k` is 0; expected at least 1"),
        ];
        for (field, value, expected) in cases {
            let found = shape(field, value);
            assert!(found.contains(expected), "{field}: {found}");
        }
    }
}
