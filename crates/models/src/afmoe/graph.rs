//! Graph of `afmoe`: Llama with gated attention, sandwich norms and a sigmoid MoE.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;
use crate::schema::key;

/// Layers with full attention, every fourth, have no RoPE. Embeddings are multiplied by
/// `sqrt(n_embd)`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        rope: None,
        embedding_scale: width.sqrt(),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.routing.gating = Gating::Sigmoid;
    blocks::decoder(builder, &decoder)
}
