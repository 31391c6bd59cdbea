//! Graph of `gemma3`: Gemma with QK-norm, sandwich norms and a sliding window.

use gguf::Finding;
use gguf_graph::RopeParameters;

use crate::blocks::{self, Decoder, WindowPattern};
use crate::gemma::graph::gemma_decoder;
use crate::graph::Builder;

/// Builds the third generation.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = with_gemma3_layers(gemma_decoder(builder, 62)?);
    blocks::decoder(builder, &decoder)
}

/// Returns the decoder with the layers of Gemma 3: five of six have a sliding window, and RoPE
/// scaling applies to the sixth only.
pub(crate) fn with_gemma3_layers(decoder: Decoder) -> Decoder {
    let window_rope = decoder.window_rope.clone().map(RopeParameters::without_scaling);
    Decoder { window_pattern: WindowPattern::AllButLast(6), window_rope, ..decoder }
}
