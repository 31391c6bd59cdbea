//! Phi 2, Phi 3 and Phi 4.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::op::Function;
use crate::rotation::Pairs;

/// Attention and feed-forward share one norm.
pub(super) fn phi2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: Function::GeluTanh,
        parallel: true,
        ..Decoder::rotated(builder, Pairs::Halves)?
    };
    decoder(builder, &family)
}

/// All layers are windowed, if there is a window: llama.cpp leaves it out.
pub(super) fn phi3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Halves)?;
    decoder(builder, &family)
}
