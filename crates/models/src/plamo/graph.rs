//! Computation graph of PLaMo-13B.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

/// Builds a decoder whose attention and FFN run in parallel on one norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder { parallel: true, ..Decoder::llama_like(builder, RopeLayout::Neox)? };
    blocks::decoder(builder, &decoder)
}
