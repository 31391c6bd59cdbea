//! Maincoder and Hunyuan, dense and with experts: queries and keys are normed after they are rotated.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, attention, decoder};
use crate::rotation::Pairs;

pub(super) fn maincoder(builder: &mut Builder<'_>) -> Result<(), Finding> {
    turned_first(builder, Pairs::Neighbours)
}

pub(super) fn hunyuan(builder: &mut Builder<'_>) -> Result<(), Finding> {
    turned_first(builder, Pairs::Halves)
}

/// The models that see images too state how positions are stretched as a factor of the base.
pub(super) fn hunyuan_seeing(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = usual(builder, Pairs::Halves)?;
    let alpha = builder.stated("rope.scaling.alpha")?.filter(|alpha| *alpha > 0.0);
    let len = builder.size("attention.key_length")? as f32;
    for rotation in [&mut family.rotation, &mut family.window_rotation].into_iter().flatten() {
        if let Some(alpha) = alpha {
            rotation.base *= alpha.powf(len / (len - 2.0));
        }
    }
    decoder(builder, &family)
}

fn turned_first(builder: &mut Builder<'_>, pairs: Pairs) -> Result<(), Finding> {
    let family = usual(builder, pairs)?;
    decoder(builder, &family)
}

fn usual(builder: &mut Builder<'_>, pairs: Pairs) -> Result<Decoder, Finding> {
    Ok(Decoder {
        attention: |builder, x, _, mut attend| {
            attend.turned_first = true;
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, pairs)?
    })
}
