//! OLMo 1, 2 and 3.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;

/// Norms follow what they normalize. In the third generation three of four layers are windowed, and
/// the others alone stretch positions.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, RopeLayout::Neox)? };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    decoder(builder, &family)
}
