//! Computation graph of Step 3.5.

use gguf::Finding;
use gguf_graph::{FreqFactors, Gating, RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, clamped_ffn};
use crate::graph::Builder;

/// Builds a decoder whose full-attention layers have half of the rotary dimensions that the key states. Some layers
/// bound the activations of the FFN.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder =
        Decoder { ffn: clamped_ffn, ..Decoder::llama_like(builder, RopeLayout::Neox)? };
    if let Some(rope) = &mut decoder.rope {
        rope.dimensions /= 2;
    }
    decoder.window_rope =
        decoder.window_rope.map(|rope| RopeParameters { freq_factors: FreqFactors::None, ..rope });
    decoder.mtp_before_norm = true;
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
