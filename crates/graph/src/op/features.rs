//! Features of the encoder's input.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::id::ValueId;
use crate::cost::{CostScope, Work};
use crate::scope::{Result, Scope, equal, require};
use crate::tensor::{RowDim, Shape};

/// Returns the features that the caller passes to the encoder, such as a log-mel spectrogram.
///
/// - Output: `[frames, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Number of features per frame.
    pub width: u32,
}

impl Operation for Features {
    fn inputs(&self) -> Vec<ValueId> {
        Vec::new()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        require(scope.is_encoder, || "features occur outside the encoder")?;
        let first = scope.features_width.unwrap_or(0);
        equal("width of the features", self.width.into(), first.into())?;
        Shape::new(RowDim::Frames { stride: 1 }, self.width.into())
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
    fn features_are_frames_of_the_encoder() {
        let mut parts = Parts { is_encoder: true, features_width: Some(4), ..Parts::default() };
        assert_eq!(parts.shape(json!({"op": "features", "width": 4})), "frames x 4");
        let message = parts.shape(json!({"op": "features", "width": 5}));
        assert_eq!(message, "the width of the features is 5; expected 4");
        parts.is_encoder = false;
        let message = parts.shape(json!({"op": "features", "width": 4}));
        assert_eq!(message, "features occur outside the encoder");
    }
}
