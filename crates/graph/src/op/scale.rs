//! Multiplication by a number.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

/// Multiplies all elements by a number: `y = factor x`.
///
/// - Inputs: `x` `[rows, n]`.
/// - Output: `[rows, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Input.
    pub x: ValueId,
    /// Factor.
    pub factor: f32,
}

impl Operation for Scale {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        scope.input(self.x)
    }
}
