//! Arcee, Jais 2 and Nemotron: feed-forward networks without a gate, by the square of what is above
//! 0.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::ReluSquared,
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
