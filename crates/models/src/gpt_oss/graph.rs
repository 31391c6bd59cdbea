//! gpt-oss.

use gguf::Finding;
use gguf_graph::{Gating, GluFunction, RopeLayout, RopeParameters};

use crate::blocks::{Decoder, Windows, decoder};
use crate::graph::Builder;

/// Every other layer is windowed, beginning with the first. The norm that is called one after
/// attention is that of the experts. YaRN does not round (llama.cpp does).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButLast(2),
        network_norm: "post_attention_norm",
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.rotation = family.rotation.map(RopeParameters::without_truncation);
    family.window_rotation = family.window_rotation.map(RopeParameters::without_truncation);
    family.routing.gating = Gating::SoftmaxAfterTopk;
    family.routing.normalize = false;
    family.routing.function = GluFunction::SwigluOai { alpha: 1.702, limit: 7.0 };
    decoder(builder, &family)
}
