//! Phi 2, Phi 3 and Phi 4, and Phi 3.5 with experts.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// All layers are windowed, if there is a window: llama.cpp leaves it out.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, RopeLayout::Neox)?;
    decoder(builder, &family)
}
