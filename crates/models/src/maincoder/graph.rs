//! Computation graph of Maincoder, shared with the Hunyuan models.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, attention};
use crate::graph::Builder;

/// Builds a Llama decoder with QK-norm after RoPE.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    build_with_layout(builder, RopeLayout::Interleaved)
}

/// Builds the decoder with a RoPE layout.
pub(crate) fn build_with_layout(
    builder: &mut Builder<'_>,
    layout: RopeLayout,
) -> Result<(), Finding> {
    let decoder = rope_before_norm(builder, layout)?;
    blocks::decoder(builder, &decoder)
}

/// Returns a Llama decoder with QK-norm after RoPE.
pub(crate) fn rope_before_norm(
    builder: &mut Builder<'_>,
    layout: RopeLayout,
) -> Result<Decoder, Finding> {
    Ok(Decoder {
        attention: |builder, x, _, mut attend| {
            attend.qk_norm_after_rope = true;
            attention(builder, x, &attend)
        },
        ..Decoder::llama_like(builder, layout)?
    })
}
