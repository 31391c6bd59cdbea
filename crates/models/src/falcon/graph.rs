//! Falcon, both generations.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder { parallel: true, ..Decoder::rotated(builder, RopeLayout::Neox)? };
    decoder(builder, &family)
}
