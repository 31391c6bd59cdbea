//! Computation graph of Llama embedding models and LLaDA.

use gguf::Finding;
use gguf_graph::{Mask, RopeLayout};

use crate::blocks::{self, Decoder, attention};
use crate::graph::Builder;

/// Builds a Llama decoder with bidirectional attention and no KV cache.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, mut attend| {
            (attend.mask, attend.cached) = (Mask::Full, false);
            attention(builder, x, &attend)
        },
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
