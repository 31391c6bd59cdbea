//! Computation graph of a plain decoder with NeoX RoPE, which Qwen and many other architectures
//! share.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, RopeLayout::Neox)?;
    decoder(builder, &family)
}
