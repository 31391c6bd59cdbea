//! Gated activation: the middle of a gated feed-forward network (GLU).

use serde::{Deserialize, Serialize};

use super::{ActivationFunction, Operation};
use crate::id::ValueId;
use crate::scope::{Result, Scope, not_negative, positive};
use crate::tensor::Shape;

/// Multiplies `up` by the activated gate: `y = function(gate) up`, as in SwiGLU and GeGLU.
///
/// - Inputs: `gate` and `up`, both `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatedActivation {
    /// Input of the activation function.
    pub gate: ValueId,
    /// Factor.
    pub up: ValueId,
    /// Activation function, and clamping.
    pub function: GluFunction,
}

/// Function of the gate and `up` projection of a gated linear unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GluFunction {
    /// `function(gate) up`.
    Plain(ActivationFunction),
    /// gpt-oss: `g / (1 + exp(-alpha g)) (u + 1)` with `g = min(gate, limit)` and
    /// `u = min(max(up, -limit), limit)`.
    SwigluOai {
        /// Steepness of the sigmoid.
        alpha: f32,
        /// Limit of gate and `up`.
        limit: f32,
    },
    /// Kimi K3: `beta tanh(gate / beta) / (1 + exp(-gate)) u` with `u = linear tanh(up / linear)`, or `up`
    /// without `linear`.
    Situ {
        /// Limit of the gate.
        beta: f32,
        /// Limit of `up`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        linear: Option<f32>,
    },
    /// `function(min(gate, limit)) u` with `u = min(max(up, -limit), limit)`.
    ClampBefore {
        /// Activation function.
        function: ActivationFunction,
        /// Limit of gate and `up`.
        limit: f32,
    },
    /// `min(function(gate), limit) u` with `u = min(max(up, -limit), limit)`.
    ClampAfter {
        /// Activation function.
        function: ActivationFunction,
        /// Limit of the activated gate and `up`.
        limit: f32,
    },
}

impl GluFunction {
    /// Returns the activation function for networks without a gate.
    pub fn activation(self) -> ActivationFunction {
        match self {
            Self::Plain(function)
            | Self::ClampBefore { function, .. }
            | Self::ClampAfter { function, .. } => function,
            Self::SwigluOai { .. } | Self::Situ { .. } => ActivationFunction::Silu,
        }
    }

    /// Checks the attributes.
    pub(super) fn check(self) -> Result<()> {
        match self {
            Self::Situ { beta, linear } => {
                positive("beta", beta)?;
                linear.map_or(Ok(()), |linear| positive("linear", linear))
            }
            Self::SwigluOai { limit, .. }
            | Self::ClampBefore { limit, .. }
            | Self::ClampAfter { limit, .. } => not_negative("limit", limit),
            Self::Plain(_) => Ok(()),
        }
    }
}

impl From<ActivationFunction> for GluFunction {
    fn from(function: ActivationFunction) -> Self {
        Self::Plain(function)
    }
}

impl Operation for GatedActivation {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.gate, self.up]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        self.function.check()?;
        scope.equal_inputs(self.gate, self.up)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn limits_are_checked() {
        let parts = Parts::new(&[8, 8], &[]);
        let shape = |function| {
            parts.shape(json!({"op": "gated_activation", "gate": 0, "up": 1, "function": function}))
        };
        assert_eq!(shape(json!({"plain": "silu"})), "tokens x 8");
        assert_eq!(
            shape(json!({"swiglu_oai": {"alpha": 1.0, "limit": -1.0}})),
            "`limit` is -1; expected at least 0"
        );
        assert_eq!(shape(json!({"situ": {"beta": 0.0}})), "`beta` is 0; expected a number above 0");
    }
}
