//! Arcee, Jais 2 and Nemotron: feed-forward networks without a gate, by the square of what is above 0.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::op::Function;
use crate::rotation::Pairs;

pub(super) fn arcee(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { function: Function::ReluSquared, ..Decoder::gated(builder, Pairs::Neighbours)? };
    decoder(builder, &family)
}

/// Jais 2 and Nemotron. The weights of Nemotron's norms, differences from 1 in a checkpoint, stand whole in the file.
pub(super) fn with_variance(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family =
        Decoder { function: Function::ReluSquared, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}
