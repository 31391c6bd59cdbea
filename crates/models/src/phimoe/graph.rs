//! Phi 2, Phi 3 and Phi 4, and Phi 3.5 with experts.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{Decoder, decoder};
use crate::graph::{Builder, Norm};

/// Norms take away the mean, as its authors have it, and experts are weighed by SparseMixer (llama.cpp has
/// the norms and the experts of other models).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// Twice the jitter that the models were trained with.
    const MARGIN: f32 = 0.02;
    let mut family = Decoder::gated(builder, RopeLayout::Neox)?;
    family.norm = Norm::layer(builder)?;
    family.routing.gating = Gating::SparseMixer { margin: MARGIN };
    family.routing.normalize = false;
    decoder(builder, &family)
}
