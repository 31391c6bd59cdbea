//! Attention temperature by position.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::scope::{Result, Scope, nonzero, require};
use crate::tensor::Shape;

/// Scales queries by their position, which lowers the attention temperature over long contexts (Llama 4):
/// `y = x (scale ln(floor((position + offset) / length) + 1) + 1)`.
///
/// - Inputs: `x` `[tokens, n]`.
/// - Output: `[tokens, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttentionTemperature {
    /// Queries.
    pub x: ValueId,
    /// Number of the first position: 0 or 1.
    pub offset: u32,
    /// Number of positions that share a factor.
    pub length: u32,
    /// Growth of the factor.
    pub scale: f32,
}

impl Operation for AttentionTemperature {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        nonzero("length", self.length)?;
        require(self.offset <= 1, || format!("`offset` is {}; expected 0 or 1", self.offset))?;
        scope.token_input(self.x)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn attributes_are_checked() {
        let parts = Parts::new(&[8], &[]);
        let shape = |offset: u32, length: u32| {
            parts.shape(json!({"op": "attention_temperature", "x": 0, "offset": offset,
                               "length": length, "scale": 0.1}))
        };
        assert_eq!(shape(1, 8192), "tokens x 8");
        assert_eq!(shape(0, 0), "`length` is 0; expected at least 1");
        assert_eq!(shape(2, 1), "`offset` is 2; expected 0 or 1");
    }
}
