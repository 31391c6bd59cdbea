//! Computation graph of GPT-J.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder whose attention and FFN run in parallel on the output of one layer norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        function: ActivationFunction::GeluTanh,
        parallel: true,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
