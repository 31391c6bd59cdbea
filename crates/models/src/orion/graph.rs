//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// As llama, but for norms with a mean.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::Silu,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
