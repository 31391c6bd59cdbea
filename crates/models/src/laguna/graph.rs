//! Computation graph of Laguna.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Gating, RopeLayout, RopeParameters};

use crate::blocks::{self, Attend, Decoder, WindowPattern, attention};
use crate::graph::Builder;

/// Builds a MoE decoder with a softplus gate on the attention output. Sliding-window layers have no
/// RoPE scaling.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButFirst(4),
        attention: |builder, x, _, mut attend: Attend| {
            attend.gate = ActivationFunction::Softplus;
            attention(builder, x, &attend)
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.window_rope = decoder.window_rope.map(RopeParameters::without_scaling);
    decoder.routing.gating = Gating::Sigmoid;
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
