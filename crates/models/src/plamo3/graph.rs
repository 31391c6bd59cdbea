//! Computation graph of PLaMo 3.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;

/// Builds a decoder with sliding windows. Only full-attention layers have RoPE scaling, whose correction range is
/// not rounded.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(8),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    decoder.rope = decoder.rope.map(RopeParameters::without_truncation);
    blocks::decoder(builder, &decoder)
}
