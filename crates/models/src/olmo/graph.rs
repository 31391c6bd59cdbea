//! Computation graph of OLMo.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms without weights.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        function: ActivationFunction::Silu,
        weightless_norms: true,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
