//! Qwen2 and Qwen3, dense and with experts, and many that are the same with other keys and tensors.
//! Those that know images too count positions in several dimensions, which are the same for text.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// Experts by the sigmoid of each.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, RopeLayout::Neox)?;
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}
