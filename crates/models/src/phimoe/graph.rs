//! Computation graph of Phi-3.5-MoE.

use gguf::Finding;
use gguf_graph::{Gating, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::{Builder, Norm};

/// Builds a decoder with layer norms and the SparseMixer router, as the authors' class computes it. llama.cpp
/// computes RMS norms and a softmax router.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    /// Twice the router jitter of training.
    const MARGIN: f32 = 0.02;
    let mut decoder = Decoder::llama_like(builder, RopeLayout::Neox)?;
    decoder.norm = Norm::layer(builder)?;
    decoder.routing.gating = Gating::SparseMixer { margin: MARGIN };
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
