//! Computation graph of Nomic BERT: a bidirectional post-norm encoder with RoPE.

use gguf::Finding;
use gguf_graph::{ActivationFunction, PositionBias, RopeLayout};

use crate::bert::graph::{Encoder, encoder};
use crate::blocks::rope;
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    rope_encoder(builder, ActivationFunction::Silu)
}

/// Builds a post-norm encoder with RoPE in NeoX layout.
pub(crate) fn rope_encoder(
    builder: &mut Builder<'_>,
    function: ActivationFunction,
) -> Result<(), Finding> {
    let rope = rope(builder, RopeLayout::Neox)?;
    encoder(builder, &Encoder { function, rope, bias: PositionBias::None })
}
