//! Graph of `command-r`: attention and FFN in parallel.

use gguf::Finding;
use gguf_graph::{ActivationFunction, RopeLayout};

use crate::blocks::{self, Decoder};
use crate::graph::Builder;
use crate::schema::key;

/// Builds the decoder of Command R.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = command_r_decoder(builder)?;
    blocks::decoder(builder, &decoder)
}

/// Returns the decoder that the generations share: layer norm, SwiGLU, parallel attention and FFN,
/// scaled logits.
pub(crate) fn command_r_decoder(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    Ok(Decoder {
        function: ActivationFunction::Silu,
        parallel: true,
        logit_scale: builder.scale_or_one(key::LOGIT_SCALE)?,
        ..Decoder::layer_norm_rope(builder, RopeLayout::Interleaved)?
    })
}
