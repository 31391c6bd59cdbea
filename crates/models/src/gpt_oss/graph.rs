//! gpt-oss.

use gguf::Finding;
use gguf_graph::{GateFunction, Gating, Pairs, Rotation};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;

/// Every other layer is windowed, beginning with the first. The norm that is called one after
/// attention is that of the experts. YaRN does not round (llama.cpp does).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButLast(2),
        network_norm: "post_attention_norm",
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    family.rotation = family.rotation.map(Rotation::unrounded);
    family.window_rotation = family.window_rotation.map(Rotation::unrounded);
    family.routing.gating = Gating::SoftmaxOfUsed;
    family.routing.normalize = false;
    family.routing.function = GateFunction::Clamped { alpha: 1.702, limit: 7.0 };
    decoder(builder, &family)
}
