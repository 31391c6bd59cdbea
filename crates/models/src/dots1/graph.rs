//! Graph of `dots1`, `hy_v3` and `minimax-m2`: Llama in NeoX layout with a sigmoid MoE.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// The router is a sigmoid.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}
