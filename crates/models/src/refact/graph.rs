//! Computation graph of Refact.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias};

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

/// Builds a decoder with RMS norms, ALiBi and SwiGLU.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::rms(builder)?;
    let family = Decoder {
        function: ActivationFunction::Silu,
        bias: PositionBias::Alibi { max_bias: 8.0 },
        ..Decoder::plain(norm)
    };
    decoder(builder, &family)
}
