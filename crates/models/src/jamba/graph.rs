//! Computation graph of Jamba: Mamba in most layers, attention in the others.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks;
use crate::blocks::{Decoder, SsmSizes, attention, is_state_space};
use crate::graph::{Builder, Norm};

/// Builds a decoder without RoPE, with Mamba in place of attention in SSM layers.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        attention: |builder, x, _, attend| match is_state_space(builder) {
            true => SsmSizes::of(builder)?.mamba1(builder, x, Some(attend.norm)),
            false => attention(builder, x, &attend),
        },
        function: ActivationFunction::Silu,
        ..Decoder::without_rope(Norm::rms(builder)?)
    };
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
