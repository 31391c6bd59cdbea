//! Qwen2 and Qwen3, dense and with experts.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn qwen(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder::gated(builder, Pairs::Halves)?;
    decoder(builder, &family)
}

/// The weights of the experts stay what they are among all.
pub(super) fn qwen2moe(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let mut family = Decoder::gated(builder, Pairs::Halves)?;
    family.routing.normalize = false;
    decoder(builder, &family)
}
