//! Computation graph of StarCoder 2 and CodeShell.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms, RoPE and an FFN without gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        function: ActivationFunction::GeluTanh,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
