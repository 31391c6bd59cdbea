//! Computation graph of the Llama decoder, shared with InternLM2, ChatGLM, ERNIE 4.5, Ling and
//! XVERSE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder with RMS norms, interleaved RoPE and SwiGLU, dense or MoE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Interleaved)?;
    blocks::decoder(builder, &decoder)
}
