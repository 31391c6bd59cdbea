//! Granite, dense and with experts, and MiniCPM: as llama, with scales.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, attention, decoder};
use crate::rotation::Pairs;

pub(super) fn granite(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

/// With windows. A key says which layers rotate.
pub(super) fn windowed(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, layer, mut attend| {
            let key = "attention.rope_pattern";
            if builder.hyper.stated(key).is_some() && !builder.flag_in(key, layer)? {
                attend.rotation = None;
            }
            attention(builder, x, &attend)
        },
        ..usual(builder)?
    };
    decoder(builder, &family)
}

/// As llama, with scales.
pub(super) fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family = Decoder {
        embedding_scale: builder.factor("embedding_scale")?,
        residual_scale: builder.factor("residual_scale")?,
        logit_scale: 1.0 / builder.factor("logit_scale")?,
        ..Decoder::gated(builder, Pairs::Neighbours)?
    };
    // The models that are not to rotate say so by this key.
    let finetuned = "rope.scaling.finetuned";
    if builder.hyper.stated(finetuned).is_some() && !builder.hyper.bool(finetuned)? {
        (family.rotation, family.window_rotation) = (None, None);
    }
    Ok(family)
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
