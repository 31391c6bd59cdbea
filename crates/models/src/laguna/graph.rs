//! Trinity, Mellum, Maple, Spark, PLaMo 3, MiMo 2, Step 3.5, Laguna, Muse Glimmer: some layers see a
//! window only, and rotate otherwise, or alone.

use gguf::Finding;
use gguf_graph::{ActivationFunction, Gating, RopeLayout, RopeParameters};

use crate::blocks::{Attend, Decoder, Windows, attention, decoder};
use crate::graph::Builder;

/// Gates of attention by softplus. Layers with a window do not stretch positions.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButFirst(4),
        attention: |builder, x, _, mut attend: Attend| {
            attend.gate = ActivationFunction::Softplus;
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.window_rotation = family.window_rotation.map(RopeParameters::without_scaling);
    family.routing.gating = Gating::Sigmoid;
    family.routing.normalize = false;
    decoder(builder, &family)
}
