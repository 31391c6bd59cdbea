//! Computation graph of Orion.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms and SwiGLU.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        function: ActivationFunction::Silu,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
