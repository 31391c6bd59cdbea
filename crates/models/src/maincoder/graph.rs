//! Maincoder and Hunyuan, dense and with experts: queries and keys are normed after they are rotated.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, attention, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    turned_first(builder, RopeLayout::Interleaved)
}

pub(crate) fn turned_first(builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<(), Finding> {
    let family = usual(builder, pairs)?;
    decoder(builder, &family)
}

pub(crate) fn usual(builder: &mut Builder<'_>, pairs: RopeLayout) -> Result<Decoder, Finding> {
    Ok(Decoder {
        attention: |builder, x, _, mut attend| {
            attend.turned_first = true;
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, pairs)?
    })
}
