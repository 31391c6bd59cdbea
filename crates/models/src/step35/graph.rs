//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{FreqFactors, Gating, RopeLayout, RopeParameters};

use crate::blocks::{Decoder, bounded_network, decoder};
use crate::graph::Builder;

/// Of heads of layers without a window half of what the key says rotates. What comes out of gates is
/// bounded in some layers.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family =
        Decoder { network: bounded_network, ..Decoder::gated(builder, RopeLayout::Neox)? };
    if let Some(rotation) = &mut family.rotation {
        rotation.dimensions /= 2;
    }
    family.window_rotation = family
        .window_rotation
        .map(|rotation| RopeParameters { freq_factors: FreqFactors::None, ..rotation });
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    decoder(builder, &family)
}
