//! Phi 2, Phi 3 and Phi 4, and Phi 3.5 with experts.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Attention and feed-forward share one norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::GeluTanh,
        parallel: true,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
