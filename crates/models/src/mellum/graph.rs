//! Computation graph of Mellum 2.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;

/// Builds a MoE decoder; sliding-window layers have no RoPE scaling.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    blocks::decoder(builder, &decoder)
}
