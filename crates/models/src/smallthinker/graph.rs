//! Computation graph of SmallThinker.

use gguf::Finding;
use gguf_graph::{ActivationFunction, GluFunction, RopeLayout, ValueId};

use crate::blocks::{self, Decoder, WindowPattern, attend, normed, scored_experts};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a decoder whose router reads the input of the layer. With a sliding window, the first of each four layers has
/// full attention without RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut decoder = Decoder {
        window_pattern: WindowPattern::AllButFirst(4),
        layer: layer_with_early_router,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    let has_window = builder.hparams.value(key::ATTENTION_SLIDING_WINDOW).is_some();
    if has_window && builder.size(key::ATTENTION_SLIDING_WINDOW)? > 0 {
        decoder.rope = None;
    }
    decoder.routing.function = GluFunction::Plain(ActivationFunction::Relu);
    blocks::decoder(builder, &decoder)
}

/// Layer whose experts are selected before attention.
fn layer_with_early_router(
    builder: &mut Builder<'_>,
    x: ValueId,
    layer: u64,
    decoder: &Decoder,
) -> Result<ValueId, Finding> {
    let scores = builder.matmul(x, "ffn_gate_inp")?;
    let x = attention_residual(builder, x, layer, decoder)?;
    let input = normed(builder, x, decoder.ffn_norm, decoder);
    let routed = scored_experts(builder, input, scores, layer, decoder.routing)?;
    Ok(builder.add(x, routed))
}

/// Residual stream after attention.
pub(crate) fn attention_residual(
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
