//! Granite, dense and with experts, and MiniCPM: as llama, with scales.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn granite(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = scaled(builder)?;
    // The models that are not to rotate say so by this key.
    let finetuned = "rope.scaling.finetuned";
    if builder.hyper.stated(finetuned).is_some() && !builder.hyper.bool(finetuned)? {
        (family.rotation, family.window_rotation) = (None, None);
    }
    decoder(builder, &family)
}

/// As llama, with the scales that the model has keys for.
pub(super) fn scaled(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    Ok(Decoder {
        embedding_scale: builder.factor("embedding_scale")?,
        residual_scale: builder.factor("residual_scale")?,
        logit_scale: 1.0 / builder.factor("logit_scale")?,
        ..Decoder::gated(builder, Pairs::Neighbours)?
    })
}

/// Without keys the scales are those of the first models: logits of a width of 256 at the end. (There
/// llama.cpp multiplies by what it ought to divide by.)
pub(super) fn minicpm(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let layers = builder.hyper.u64("block_count")? as f32;
    let width = builder.size("embedding_length")? as f32;
    let residual = builder.stated("residual_scale")?;
    let logit = builder.stated("logit_scale")?;
    let family = Decoder {
        embedding_scale: builder.factor("embedding_scale")?,
        residual_scale: residual.unwrap_or(1.4 / layers.sqrt()),
        logit_scale: 1.0 / logit.filter(|scale| *scale != 0.0).unwrap_or(width / 256.0),
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    decoder(builder, &family)
}
