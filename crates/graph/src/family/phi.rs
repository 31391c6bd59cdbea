//! Phi 2, Phi 3 and Phi 4, and Phi 3.5 with experts.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Decoder, decoder};
use crate::op::{Function, Gating};
use crate::rotation::Pairs;

/// Attention and feed-forward share one norm.
pub(super) fn phi2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        function: Function::GeluTanh,
        parallel: true,
        ..Decoder::rotated(builder, Pairs::Halves)?
    };
    decoder(builder, &family)
}

/// Norms take away the mean, as its authors have it, and experts are weighed by SparseMixer (llama.cpp has
/// the norms and the experts of other models).
pub(super) fn phimoe(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// Twice the jitter that the models were trained with.
    const MARGIN: f32 = 0.02;
    let mut family = Decoder::gated(builder, Pairs::Halves)?;
    family.norm = Norm::variance(builder)?;
    family.routing.gating = Gating::SoftmaxOfClose { margin: MARGIN };
    family.routing.normalize = false;
    decoder(builder, &family)
}

/// All layers are windowed, if there is a window: llama.cpp leaves it out.
pub(super) fn phi3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Halves)?;
    decoder(builder, &family)
}
