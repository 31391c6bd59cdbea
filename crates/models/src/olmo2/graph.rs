//! Computation graph of OLMo 2 and Olmo 3.

use gguf::Finding;
use gguf_graph::{RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;

/// Builds a decoder with post-norms. In Olmo 3 the last of each four layers has full attention, and only
/// these layers have RoPE scaling.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(4),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    blocks::decoder(builder, &decoder)
}
