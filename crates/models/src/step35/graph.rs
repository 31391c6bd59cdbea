//! Computation graph of Step 3.5.

use gguf::Finding;
use gguf_graph::{FreqFactors, Gating, RopeLayout, RopeParameters};

use crate::blocks::{Decoder, bounded_network, decoder};
use crate::graph::Builder;

/// Builds a decoder whose full-attention layers have half of the rotary dimensions that the key states. Some layers
/// bound the activations of the FFN.
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
