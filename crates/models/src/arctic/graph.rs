//! SmallThinker and Arctic: experts are chosen by what goes into the layer.

use gguf::Finding;
use gguf_graph::{RopeLayout, ValueId};

use crate::blocks::{Decoder, decoder, experts, feed_forward, normed};
use crate::graph::Builder;
use crate::smallthinker::graph::attention_residual;

/// Arctic: a dense network behind attention, and experts beside both.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { layer: beside_all, ..Decoder::gated(builder, RopeLayout::Interleaved)? };
    decoder(builder, &family)
}

fn beside_all(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let y = attention_residual(builder, x, layer, decoder)?;
    let input = normed(builder, y, decoder.network_norm, decoder);
    let dense = feed_forward(builder, input, decoder.function, "")?;
    let y = builder.add(y, dense);
    let input = normed(builder, x, "ffn_norm_exps", decoder);
    let routed = experts(builder, input, layer, decoder.routing)?;
    Ok(builder.add(y, routed))
}
