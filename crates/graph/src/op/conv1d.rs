//! Convolution over frames.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::cost::{CostScope, Work};
use crate::id::{ValueId, WeightId};
use crate::scope::{Result, Scope, equal, invalid, require};
use crate::tensor::{RowDim, Shape};

/// Maximum number of frames per row.
const MAX_STRIDE: u32 = 64;

/// Convolves frames with centered kernels and zero padding:
/// `y[t] = bias + sum over i, c of weight[i, c] x[stride t - (kernel - 1) / 2 + i, c]`.
///
/// - Inputs: `x` `[frames, n]`.
/// - Weights: `weight` `[kernel, n, m]`, the kernel odd; `bias` `[m]`, optional.
/// - Output: `[ceil(frames / stride), m]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv1d {
    /// Input.
    pub x: ValueId,
    /// Kernels.
    pub weight: WeightId,
    /// Bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias: Option<WeightId>,
    /// Input rows per output row.
    pub stride: u32,
}

impl Operation for Conv1d {
    fn inputs(&self) -> Vec<ValueId> {
        vec![self.x]
    }

    fn weights(&self) -> Vec<WeightId> {
        [self.weight].into_iter().chain(self.bias).collect()
    }

    fn shape(&self, scope: &Scope<'_>) -> Result<Shape> {
        let x = scope.input(self.x)?;
        let RowDim::Frames { stride: before } = x.rows else {
            return Err(invalid(format!("the input has {} as rows; expected frames", x.rows)));
        };
        let [kernel, input, output] = scope.dims(self.weight)?;
        require(kernel % 2 == 1, || format!("the kernel has length {kernel}; expected an odd number"))?;
        equal("width of the input", x.width.into(), input)?;
        scope.optional_weight(self.bias, &[output])?;
        let stride = before.checked_mul(self.stride);
        let stride = stride.filter(|stride| (1..=MAX_STRIDE).contains(stride)).ok_or_else(|| {
            invalid(format!("`stride` is {}; expected 1 to {}", self.stride, MAX_STRIDE / before))
        })?;
        Shape::new(RowDim::Frames { stride }, output)
    }

    fn cost(&self, scope: &CostScope<'_>) -> Work {
        scope.dense(self.weight)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::op::tests::Parts;
    use crate::tensor::{RowDim, Shape};

    #[test]
    fn strides_multiply() {
        let mut parts = Parts::new(&[8], &[&[3, 8, 6], &[4, 8, 6]]);
        let op = |weight: u32, stride: u32| json!({"op": "conv1d", "x": 0, "weight": weight, "stride": stride});
        assert_eq!(parts.shape(op(0, 2)), "the input has tokens as rows; expected frames");
        parts.shapes = vec![Shape { rows: RowDim::Frames { stride: 2 }, width: 8 }];
        assert_eq!(parts.shape(op(0, 2)), "frames/4 x 6");
        assert_eq!(parts.shape(op(1, 2)), "the kernel has length 4; expected an odd number");
        assert_eq!(parts.shape(op(0, 0)), "`stride` is 0; expected 1 to 32");
    }
}
