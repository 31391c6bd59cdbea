//! Arcee, Jais 2 and Nemotron: feed-forward networks without a gate, by the square of what is above 0.

use gguf::Finding;

use crate::build::{Builder, Norm};
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
    let norm = Norm::variance(builder)?;
    let family = Decoder { function: Function::ReluSquared, ..Decoder::plain(norm) };
    let family = family.rotating(builder, Pairs::Halves)?;
    decoder(builder, &family)
}
