//! Graph of `arctic`: a dense FFN after attention, and a MoE that reads the layer input.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{self, Decoder, experts, feed_forward, normed};
use crate::graph::Builder;
use crate::smallthinker::graph::attention_residual;

/// Builds Llama with the layer of Arctic.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        layer: dense_moe_layer,
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}

/// `y = x + attention(norm(x))`, then `y + ffn(norm(y)) + moe(norm_exps(x))`.
fn dense_moe_layer(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let y = attention_residual(builder, x, layer, decoder)?;
    let input = normed(builder, y, decoder.ffn_norm, decoder);
    let dense = feed_forward(builder, input, decoder.function, "")?;
    let y = builder.add(y, dense);
    let input = normed(builder, x, "ffn_norm_exps", decoder);
    let routed = experts(builder, input, layer, decoder.routing)?;
    Ok(builder.add(y, routed))
}
