//! Computation graph of Refact.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias};

use crate::blocks::{self, Decoder};
use crate::graph::{Builder, Norm};

/// Builds a decoder with RMS norms, ALiBi and SwiGLU.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let decoder = Decoder {
        function: ActivationFunction::Silu,
        bias: PositionBias::Alibi { max_bias: 8.0 },
        ..Decoder::without_rope(norm)
    };
    blocks::decoder(builder, &decoder)
}
