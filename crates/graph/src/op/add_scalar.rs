//! Addition of a number.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Adds a number to all elements: `y = x + scalar`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddScalar {
    /// Input.
    pub x: ValueId,
    /// Summand.
    pub scalar: f32,
}

impl Operation for AddScalar {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        scope.input(self.x)
    }
}
