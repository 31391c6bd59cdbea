//! Falcon, both generations.

use gguf::Finding;

use crate::build::{Builder, Norm};
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn falcon(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let norm = Norm::variance(builder)?;
    let family = Decoder { parallel: true, ..Decoder::plain(norm) };
    let family = family.rotating(builder, Pairs::Halves)?;
    decoder(builder, &family)
}
