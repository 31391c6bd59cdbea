//! Computation graph of StarCoder 2 and CodeShell.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Builds a decoder with layer norms, RoPE and an FFN without gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: ActivationFunction::GeluTanh,
        ..Decoder::rotated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
