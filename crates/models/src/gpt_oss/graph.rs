//! Computation graph of gpt-oss.

use gguf::Finding;
use gguf_graph::{Gating, GluFunction, RopeLayout, RopeParameters};

use crate::blocks::{self, Decoder, WindowPattern};
use crate::graph::Builder;

/// Builds a MoE decoder with sliding-window attention in every second layer, beginning with the
/// first. `post_attention_norm` is the norm before the MoE. The bounds of the YaRN ramp are not
/// rounded (llama.cpp rounds them).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButLast(2),
        ffn_norm: "post_attention_norm",
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.rope = decoder.rope.map(RopeParameters::without_truncation);
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_truncation);
    decoder.routing.gating = Gating::SoftmaxAfterTopk;
    decoder.routing.normalize = false;
    decoder.routing.function = GluFunction::SwigluOai { alpha: 1.702, limit: 7.0 };
    blocks::decoder(builder, &decoder)
}
