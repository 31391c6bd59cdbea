//! Computation graph of Step 3.5.

use gguf::Finding;
use gguf_graph::{FreqFactors, Gating, RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, bounded_network};
use crate::graph::Builder;

/// Builds a decoder whose full-attention layers have half of the rotary dimensions that the key states. Some layers
/// bound the activations of the FFN.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { network: bounded_network, ..Decoder::gated(builder, RopeLayout::Neox)? };
    if let Some(rotation) = &mut decoder.rotation {
        rotation.dimensions /= 2;
    }
    decoder.window_rotation = decoder
        .window_rotation
        .map(|rotation| RopeParameters { freq_factors: FreqFactors::None, ..rotation });
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
