//! Computation graph of PLaMo-13B.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Builds a decoder whose attention and FFN run in parallel on one norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { parallel: true, ..Decoder::gated(builder, RopeLayout::Neox)? };
    decoder(builder, &family)
}
