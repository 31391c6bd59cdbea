//! Graph of `deepseek`: Llama with a MoE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Expert weights are the softmax over all experts, not normalized over the selected ones.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
