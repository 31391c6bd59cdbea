//! Maincoder and Hunyuan: queries and keys are normed after they are rotated.

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

fn turned_first(builder: &mut Builder<'_>, pairs: Pairs) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, mut attend| {
            attend.turned_first = true;
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, pairs)?
    };
    decoder(builder, &family)
}
