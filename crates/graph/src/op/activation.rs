//! Activation functions.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Applies an activation function to all elements: `y = function(x)`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Activation {
    /// Input.
    pub x: ValueId,
    /// Activation function.
    pub function: ActivationFunction,
}

/// Function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivationFunction {
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
    /// `x` if it is positive, else `exp(x) - 1`.
    Elu,
    /// `sign(x) sqrt(max(|x|, 1e-6))`, and 0 for 0.
    SignedSqrt,
}

impl Operation for Activation {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        scope.input(self.x)
    }
}
