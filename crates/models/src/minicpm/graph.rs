//! Granite, dense and with experts, and MiniCPM: as llama, with scales.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Without keys the scales are those of the first models: logits of a width of 256 at the end. (There
/// llama.cpp multiplies by what it ought to divide by.)
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let layers = builder.hyper.u64(key::BLOCK_COUNT)? as f32;
    let width = builder.size(key::EMBEDDING_LENGTH)? as f32;
    let residual = builder.stated(key::RESIDUAL_SCALE)?;
    let logit = builder.stated(key::LOGIT_SCALE)?;
    let family = Decoder {
        embedding_scale: builder.factor(key::EMBEDDING_SCALE)?,
        residual_scale: residual.unwrap_or(1.4 / layers.sqrt()),
        logit_scale: 1.0 / logit.filter(|scale| *scale != 0.0).unwrap_or(width / 256.0),
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
