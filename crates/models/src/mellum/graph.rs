//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;

/// Layers with a window do not stretch positions.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, RopeLayout::Neox)? };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    decoder(builder, &family)
}
