//! Computation graph of Phi-3 and Phi-4.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder. If there is a sliding window, it applies to all layers; llama.cpp ignores it.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    blocks::decoder(builder, &decoder)
}
