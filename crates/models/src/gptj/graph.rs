//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Attention and feed-forward share one norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::GeluTanh,
        parallel: true,
        ..Decoder::rotated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
