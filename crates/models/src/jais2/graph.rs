//! Computation graph of Jais 2, shared with Nemotron.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms and squared ReLU. Nemotron's checkpoints store norm weights
/// minus 1; the converter adds 1.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        function: ActivationFunction::ReluSquared,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
