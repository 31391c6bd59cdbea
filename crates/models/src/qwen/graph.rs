//! Computation graph of a plain decoder with NeoX RoPE, which Qwen and many other architectures
//! share.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    blocks::decoder(builder, &decoder)
}
