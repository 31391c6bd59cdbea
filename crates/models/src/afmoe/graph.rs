//! Graph of `afmoe`: Llama with gated attention, sandwich norms and a sigmoid MoE.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder, Windows};
use crate::graph::Builder;
use crate::schema::key;

/// Layers with full attention, every fourth, have no RoPE. Embeddings are multiplied by
/// `sqrt(n_embd)`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut decoder = Decoder {
        windows: Windows::AllButLast(4),
        rotation: None,
        embedding_scale: width.sqrt(),
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}
