//! Graph of `exaone-moe`: that of `exaone4` with a sigmoid MoE.

use gguf::Finding;
use gguf_graph::Gating;

use crate::blocks;
use crate::exaone4::graph::exaone4_decoder;
use crate::graph::Builder;

/// The router is a sigmoid.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = exaone4_decoder(builder)?;
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}
