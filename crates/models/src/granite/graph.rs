//! Granite, dense and with experts, and MiniCPM: as llama, with scales.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;
use crate::schema::key;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

/// As llama, with scales.
pub(crate) fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder {
        embedding_scale: builder.factor(key::EMBEDDING_SCALE)?,
        residual_scale: builder.factor(key::RESIDUAL_SCALE)?,
        logit_scale: 1.0 / builder.factor(key::LOGIT_SCALE)?,
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    // The models that are not to rotate say so by this key.
    let finetuned = "rope.scaling.finetuned";
    if builder.hyper.stated(finetuned).is_some() && !builder.hyper.bool(finetuned)? {
        (family.rotation, family.window_rotation) = (None, None);
    }
    Ok(family)
}
