//! Computation graph of PLM.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::deepseek2::graph::{attention, softmax_scale};
use crate::graph::Builder;

/// Builds a decoder with MLA and an FFN without gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention,
        function: ActivationFunction::ReluSquared,
        attention_scale: Some(softmax_scale(builder)?),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
