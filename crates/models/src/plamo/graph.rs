//! GPT-2 and what is built like it: learned positions or slopes, norms with mean, no gates.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// PLaMo: as llama, but attention and feed-forward share one norm.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { parallel: true, ..Decoder::gated(builder, RopeLayout::Neox)? };
    decoder(builder, &family)
}
