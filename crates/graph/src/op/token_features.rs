//! Features of the tokens of a batch.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope, require};
use crate::tensor::{RowDim, Shape};

/// Returns the features that the caller passes with the tokens: in a draft model, hidden states of the target model.
///
/// - Output: `[tokens, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFeatures {
    /// Number of features per token.
    pub width: u32,
}

impl Operation for TokenFeatures {
    fn inputs(&self) -> Vec<ValueId> {
        Vec::new()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        require(!scope.is_encoder, || "token features occur in the encoder")?;
        Shape::new(RowDim::Tokens, self.width.into())
    }

    fn cost(&self, _: &CostScope<'_>) -> Work {
        Work::NONE
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;

    #[test]
    fn token_features_are_rows_of_the_main_program() {
        let mut parts = Parts::default();
        assert_eq!(parts.shape(json!({"op": "token_features", "width": 4})), "tokens x 4");
        parts.is_encoder = true;
        let message = parts.shape(json!({"op": "token_features", "width": 4}));
        assert_eq!(message, "token features occur in the encoder");
    }
}
