//! Gemma 1, 2 and 3, and the encoder made of the third.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, Windows, decoder};
use crate::op::Function;
use crate::rotation::{Pairs, Rotation};

pub(super) fn gemma(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder, 0)?;
    decoder(builder, &family)
}

/// Every other layer is windowed, beginning with the first.
pub(super) fn gemma2(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { windows: Windows::AllButLast(2), ..usual(builder, 46)? };
    decoder(builder, &family)
}

/// Of six layers one has no window; only these stretch positions.
pub(super) fn gemma3(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = third(usual(builder, 62)?);
    decoder(builder, &family)
}

/// The third generation as an encoder, unless the model says that it is none.
pub(super) fn embedding(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = third(usual(builder, 0)?);
    decoder(builder, &family)
}

fn third(family: Decoder) -> Decoder {
    let window_rotation = family.window_rotation.clone().map(Rotation::plain);
    Decoder { windows: Windows::AllButLast(6), window_rotation, ..family }
}

/// What all have. Models of `special` layers scale attention by another number than the length of a
/// head, without a key that says it.
fn usual(builder: &mut Builder<'_>, special: u64) -> Result<Decoder, Finding> {
    let width = builder.size("embedding_length")?;
    let attention_scale = if builder.hyper.u64("block_count")? == special {
        let heads = builder.size("attention.head_count")?.max(1);
        Some(1.0 / ((width / heads) as f32).sqrt())
    } else {
        None
    };
    Ok(Decoder {
        function: Function::GeluTanh,
        embedding_scale: (width as f32).sqrt(),
        attention_scale,
        ..Decoder::gated(builder, Pairs::Halves)?
    })
}
