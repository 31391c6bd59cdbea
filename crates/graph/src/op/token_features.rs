//! Features of the tokens of a batch.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::ValueId;
use crate::scope::{Result, Scope};
use crate::tensor::Shape;

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
        Shape::new(scope.token_rows()?, self.width.into())
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
    fn token_features_are_rows_of_tokens() {
        let mut parts = Parts::default();
        let op = json!({"op": "token_features", "width": 4});
        assert_eq!(parts.shape(op.clone()), "tokens x 4");
        parts.is_encoder = true;
        assert_eq!(parts.shape(op.clone()), "tokens x 4");
        parts.features_width = Some(4);
        assert_eq!(parts.shape(op), "an encoder of frames has no tokens");
    }
}
