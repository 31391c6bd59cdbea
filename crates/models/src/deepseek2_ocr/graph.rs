//! Llama, Mistral and Mixtral. InternLM2, ChatGLM, Ernie 4.5, Ling and XVERSE are the same with
//! other keys and tensors, the first DeepSeek with experts weighed otherwise.

use gguf::Finding;
use gguf_graph::{FreqFactors, Mask, RopeLayout, RopeParameters, RopeScaling};

use crate::blocks::{Decoder, Heads, attention, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// DeepSeek's OCR: heads rotate whole, whatever the key says. The window of those that have one
/// spares what is read first, which no mask here tells: all is looked at.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let rotation = RopeParameters {
        layout: RopeLayout::Neox,
        start: 0,
        dimensions: Heads::of(builder, 0)?.key_len,
        freq_base: builder.hyper.f32(key::ROPE_FREQ_BASE)?,
        scaling: RopeScaling::None,
        attention_factor: 1.0,
        freq_factors: FreqFactors::None,
        block: 1,
        inverse: false,
    };
    let mut family = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.mask = Mask::Causal;
            attention(builder, x, &attend)
        },
        window_rotation: Some(rotation.clone()),
        rotation: Some(rotation),
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    family.routing.normalize = false;
    decoder(builder, &family)
}
