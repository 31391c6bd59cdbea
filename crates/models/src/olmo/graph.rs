//! OLMo 1, 2 and 3.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// The norms have no weights.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::Silu,
        weightless_norms: true,
        ..Decoder::rotated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
