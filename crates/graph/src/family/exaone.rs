//! Exaone 4 and K-Exaone: where some layers see a window, only these rotate.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, Windows, decoder};
use crate::op::Gating;
use crate::rotation::Pairs;

pub(super) fn exaone4(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = usual(builder)?;
    decoder(builder, &family)
}

/// Experts by the sigmoid of each.
pub(super) fn k_exaone(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = usual(builder)?;
    family.routing.gating = Gating::Sigmoid;
    decoder(builder, &family)
}

fn usual(builder: &mut Builder<'_>) -> Result<Decoder, Finding> {
    let mut family =
        Decoder { windows: Windows::AllButLast(4), ..Decoder::gated(builder, Pairs::Halves)? };
    let has_window = builder.hyper.stated("attention.sliding_window").is_some();
    if has_window && builder.size("attention.sliding_window")? > 0 {
        family.rotation = None;
    }
    Ok(family)
}
