//! OLMo 1, 2 and 3.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, Windows, decoder};
use crate::op::Function;
use crate::rotation::{Pairs, Rotation};

/// The norms have no weights.
pub(super) fn olmo(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: Function::Silu,
        weightless_norms: true,
        ..Decoder::rotated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}

/// Norms follow what they normalize. In the third generation three of four layers are windowed, and
/// the others alone stretch positions.
pub(super) fn olmo2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, Pairs::Halves)? };
    family.window_rotation = family.window_rotation.map(Rotation::plain);
    decoder(builder, &family)
}
