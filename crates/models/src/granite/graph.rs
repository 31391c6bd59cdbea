//! Computation graph of Granite, dense and MoE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Builds a Llama decoder with multipliers.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = granite_decoder(builder)?;
    blocks::decoder(builder, &decoder)
}

/// Returns a Llama decoder with the multipliers of embedding, residual branches and logits.
pub(crate) fn granite_decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut decoder = Decoder {
        embedding_scale: builder.scale_or_one(key::EMBEDDING_SCALE)?,
        residual_scale: builder.scale_or_one(key::RESIDUAL_SCALE)?,
        logit_scale: 1.0 / builder.scale_or_one(key::LOGIT_SCALE)?,
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    // Models without RoPE (NoPE) set this key to false.
    let finetuned = "rope.scaling.finetuned";
    if builder.hparams.value(finetuned).is_some() && !builder.hparams.bool(finetuned)? {
        (decoder.rope, decoder.window_rope) = (None, None);
    }
    Ok(decoder)
}
