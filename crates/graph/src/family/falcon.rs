//! Falcon, both generations.

use gguf::Finding;

use crate::build::Builder;
use crate::layers::{Decoder, decoder};
use crate::rotation::Pairs;

pub(super) fn falcon(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { parallel: true, ..Decoder::rotated(builder, Pairs::Halves)? };
    decoder(builder, &family)
}
