//! gpt-oss.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, Windows, decoder};
use crate::op::{GateFunction, Gating};
use crate::rotation::{Pairs, Stretch};

/// Every other layer is windowed, beginning with the first. The norm that is called one after
/// attention is that of the experts. YaRN does not round (llama.cpp does).
pub(super) fn gpt_oss(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButLast(2),
        network_norm: "post_attention_norm",
        ..Decoder::gated(builder, Pairs::Halves)?
    };
    for rotation in [&mut family.rotation, &mut family.window_rotation].into_iter().flatten() {
        if let Stretch::Yarn { rounded, .. } = &mut rotation.stretch {
            *rounded = false;
        }
    }
    family.routing.gating = Gating::SoftmaxOfUsed;
    family.routing.normalize = false;
    family.routing.function = GateFunction::Clamped { alpha: 1.702, limit: 7.0 };
    decoder(builder, &family)
}
