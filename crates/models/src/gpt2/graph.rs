//! Computation graph of GPT-2, shared with StarCoder and BLOOM.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks::{self, Decoder};
use crate::graph::{Builder, Norm};

/// Builds a decoder with layer norms and a GELU FFN without gate. GPT-2 and StarCoder have learned
/// positions, BLOOM has ALiBi and a norm of the token embedding.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let decoder = Decoder { function: ActivationFunction::GeluTanh, ..Decoder::without_rope(norm) };
    blocks::decoder(builder, &decoder)
}
