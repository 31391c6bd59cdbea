//! What experts ask of their parts.

use super::{Place, Result, gate_function, product, require, same};
use crate::graph::Shape;
use crate::op::{Experts, Gating};

impl Place<'_> {
    pub(super) fn experts(&self, experts: &Experts) -> Result<Shape> {
        let (x, scores) = (self.value(experts.x)?, self.value(experts.scores)?);
        gate_function(experts.function)?;
        require(x.rows == scores.rows, "the values have other rows")?;
        let [input, up, networks] = self.cube(experts.up)?;
        same("width of the value and of the experts", x.width.into(), input)?;
        let count = product(networks, experts.share.into())?;
        same("number of scores and experts", scores.width.into(), count)?;
        if let Some(gate) = experts.gate {
            self.weight_is(gate, &[input, up, networks])?;
        }
        let [inner, output, _] = self.cube(experts.down)?;
        self.weight_is(experts.down, &[inner, output, networks])?;
        require(
            up == inner || (experts.gate.is_none() && up == 2 * inner),
            "what goes into the experts' last matrices is not as wide as what they are given",
        )?;
        self.optional(experts.selection_bias, &[count])?;
        self.optional(experts.scales, &[count])?;
        self.optional(experts.gate_bias, &[inner, networks])?;
        self.optional(experts.up_bias, &[up, networks])?;
        self.optional(experts.down_bias, &[output, networks])?;
        if let Gating::SoftmaxOfClose { margin } = experts.gating {
            require(margin >= 0.0, "the margin is below 0")?;
        }
        let used = u64::from(experts.used);
        require((1..=count).contains(&used), "a token uses no expert, or more than there are")?;
        if let Some(chosen) = experts.chosen {
            let chosen = self.value(chosen)?;
            require(chosen.rows == x.rows, "the values have other rows")?;
            same("numbers of experts and experts of a token", chosen.width.into(), used)?;
        }
        let (groups, groups_used) = (experts.groups, experts.groups_used);
        require(
            groups > 0 && count % u64::from(groups) == 0 && (1..=groups).contains(&groups_used),
            "the groups do not divide the experts, or more are used than there are",
        )?;
        require(
            used <= count / u64::from(groups) * u64::from(groups_used),
            "a token uses more experts than its groups have",
        )?;
        require(experts.group_best > 0, "groups are compared by none of their experts")?;
        Shape::new(x.rows, output)
    }
}
