//! Graph of `deepseek2-ocr`: Llama in NeoX layout with a MoE.

use gguf::Finding;
use gguf_graph::{FreqFactors, Mask, RopeLayout, RopeParameters, RopeScaling};

use crate::blocks::{self, Decoder, Heads, attention};
use crate::graph::Builder;
use crate::schema::key;

/// RoPE covers whole heads, whatever `rope.dimension_count` says. The sliding window of Unlimited
/// OCR exempts the first tokens, for which there is no mask: attention is full.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let rope = RopeParameters {
        layout: RopeLayout::Neox,
        start: 0,
        dimensions: Heads::of(builder, 0)?.key_len,
        freq_base: builder.hparams.f32(key::ROPE_FREQ_BASE)?,
        scaling: RopeScaling::None,
        attention_factor: 1.0,
        freq_factors: FreqFactors::None,
        block: 1,
        inverse: false,
    };
    let mut decoder = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.mask = Mask::Causal;
            attention(builder, x, &attend)
        },
        window_rope: Some(rope.clone()),
        rope: Some(rope),
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    decoder.routing.normalize = false;
    blocks::decoder(builder, &decoder)
}
