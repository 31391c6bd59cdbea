//! Graph of `glm-dsa`: that of `deepseek32` with another RoPE layout of the indexer.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::deepseek32::graph::decoder_with_indexer;
use crate::graph::Builder;

/// The indexer has RoPE in interleaved layout. Layers without an indexer reuse the selection of the
/// layer before.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    decoder_with_indexer(builder, RopeLayout::Interleaved)
}
