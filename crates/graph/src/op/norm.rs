//! Code shared by `LayerNorm`, `RmsNorm` and `L2Norm`.

use super::{L2Norm, LayerNorm, Op, RmsNorm};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, not_negative, require};
use crate::tensor::Shape;

/// The norms, for code that chooses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// [`LayerNorm`].
    Layer,
    /// [`RmsNorm`].
    Rms,
    /// [`L2Norm`].
    L2,
}

impl NormKind {
    /// Returns the operation that applies this norm.
    pub fn op(
        self,
        x: ValueId,
        epsilon: f32,
        groups: u32,
        weight: Option<WeightId>,
        bias: Option<WeightId>,
    ) -> Op {
        match self {
            Self::Layer => LayerNorm { x, epsilon, groups, weight, bias }.into(),
            Self::Rms => RmsNorm { x, epsilon, groups, weight, bias }.into(),
            Self::L2 => L2Norm { x, epsilon, groups, weight, bias }.into(),
        }
    }
}

/// Returns the shape of a norm: that of its input.
pub(super) fn shape(
    scope: &Scope<'_>,
    x: ValueId,
    epsilon: f32,
    groups: u32,
    weights: [Option<WeightId>; 2],
) -> Result<Shape> {
    let x = scope.input(x)?;
    not_negative("epsilon", epsilon)?;
    let group_len = x.group_len(groups)?;
    for weight in weights.into_iter().flatten() {
        let len = scope.elements(weight)?;
        require(len == u64::from(x.width) || len == u64::from(group_len), || {
            format!("the weight has {len} elements; expected {} or {group_len}", x.width)
        })?;
    }
    Ok(x)
}
