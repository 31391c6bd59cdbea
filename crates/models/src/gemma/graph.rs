//! Graph of `gemma`; the later generations share its decoder.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Builds the first generation.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = gemma_decoder(builder, 0)?;
    blocks::decoder(builder, &decoder)
}

/// Returns the decoder that all generations share: GeGLU, embeddings multiplied by `sqrt(n_embd)`.
/// Models with `block_count` layers (27B) have the softmax scale `1 / sqrt(n_embd / n_head)`
/// instead of that of the head dimension; files have no key for it.
pub(crate) fn gemma_decoder(
    builder: &mut Builder<'_>,
    block_count: u64,
) -> Result<Decoder, Finding> {
    let width = builder.size(key::EMBEDDING_LENGTH)?;
    let attention_scale = if builder.hparams.u64(key::BLOCK_COUNT)? == block_count {
        let heads = builder.size(key::ATTENTION_HEAD_COUNT)?.max(1);
        Some(1.0 / ((width / heads) as f32).sqrt())
    } else {
        None
    };
    Ok(Decoder {
        function: ActivationFunction::GeluTanh,
        embedding_scale: (width as f32).sqrt(),
        attention_scale,
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    })
}
