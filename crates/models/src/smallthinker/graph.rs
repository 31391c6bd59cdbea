//! SmallThinker and Arctic: experts are chosen by what goes into the layer.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout, ValueId};

use crate::blocks::{Decoder, Windows, attend, decoder, normed, scored_experts};
use crate::graph::Builder;
use crate::schema::key;

/// SmallThinker. Of four layers the first sees all, and does not rotate, where there are windows.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder {
        windows: Windows::AllButFirst(4),
        layer: before_attention,
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    let has_window = builder.hyper.stated(key::ATTENTION_SLIDING_WINDOW).is_some();
    if has_window && builder.size(key::ATTENTION_SLIDING_WINDOW)? > 0 {
        family.rotation = None;
    }
    family.routing.function = GluFunction::Plain(ActivationFunction::Relu);
    decoder(builder, &family)
}

fn before_attention(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.product(x, "ffn_gate_inp")?;
    let x = attended(builder, x, layer, decoder)?;
    let input = normed(builder, x, decoder.network_norm, decoder);
    let routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    Ok(builder.add(x, routed))
}

/// What goes into a layer, with what its attention adds.
pub(crate) fn attended(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let input = normed(builder, x, "attn_norm", decoder);
    let attend = attend(builder, layer, decoder)?;
    let attended = (decoder.attention)(builder, input, layer, attend)?;
    Ok(builder.add(x, attended))
}
