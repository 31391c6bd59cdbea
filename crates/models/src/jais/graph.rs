//! Computation graph of Jais.

use gguf::Finding;
use gguf_graph::ActivationFunction;

use crate::blocks::{self, Decoder, Heads};
use crate::graph::{Builder, Norm};

/// Builds a decoder with layer norms, ALiBi and SwiGLU; attention logits are scaled by `1 /
/// head_dim`.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::layer(builder)?;
    let head_dim = Heads::of(builder, 0)?.key_len.max(1) as f32;
    let decoder = Decoder {
        function: ActivationFunction::Silu,
        attention_scale: Some(1.0 / head_dim),
        ..Decoder::without_rope(norm)
    };
    blocks::decoder(builder, &decoder)
}
