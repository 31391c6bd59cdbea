//! Qwen2 and Qwen3, dense and with experts, and many that are the same with other keys and tensors. Those that know
//! images too count positions in several dimensions, which are the same for text.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

/// The norm before the feed-forward network has the name of one after attention.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        network_norm: "post_attention_norm",
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
