//! Arcee, Jais 2 and Nemotron: feed-forward networks without a gate, by the square of what is above 0.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Jais 2 and Nemotron. The weights of Nemotron's norms, differences from 1 in a checkpoint, stand whole in the file.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::ReluSquared,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
