//! Computation graph of MiniCPM.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a Llama decoder with multipliers. Files without the keys use those of the first models:
/// residual branches times `1.4 / sqrt(layers)`, logits divided by `embedding_length / 256`
/// (llama.cpp multiplies by it).
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let layers = builder.hparams.u64(key::BLOCK_COUNT)? as f32;
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let residual = builder.f32_if_present(key::RESIDUAL_SCALE)?;
    let logit = builder.f32_if_present(key::LOGIT_SCALE)?;
    let decoder = Decoder {
        embedding_scale: builder.scale_or_one(key::EMBEDDING_SCALE)?,
        residual_scale: residual.unwrap_or(1.4 / layers.sqrt()),
        logit_scale: 1.0 / logit.filter(|scale| *scale != 0.0).unwrap_or(width / 256.0),
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
