//! Computation graph of Qwen2-MoE, OLMoE and LLaDA-MoE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder whose router weights are not renormalized by default.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
