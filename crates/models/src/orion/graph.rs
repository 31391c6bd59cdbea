//! Computation graph of Orion.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms and SwiGLU.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::Silu,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
