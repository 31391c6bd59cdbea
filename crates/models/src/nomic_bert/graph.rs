//! BERT and what follows it: encoders of text, whose norms stand behind the sums. The latest, ModernBERT,
//! NeoBERT and EuroBERT, are decoders that see both sides.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias, RopeLayout};

use crate::bert::graph::{Encoder, encoder};
use crate::blocks::rotation;
use crate::graph::Builder;

/// Nomic's: rotation, and a gate.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rotated(builder, ActivationFunction::Silu)
}

pub(crate) fn rotated(
    builder: &mut Builder<'_>,
    function: ActivationFunction,
) -> Result<(), Finding> {
    let rotation = rotation(builder, RopeLayout::Neox)?;
    encoder(builder, &Encoder { function, rotation, bias: PositionBias::None })
}
