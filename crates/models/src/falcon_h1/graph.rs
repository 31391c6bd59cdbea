//! State spaces in place of attention or beside it: Jamba, Granite 4 and Bamba, Falcon H1,
//! Nemotron-H.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, StateSpace, attention, decoder};
use crate::graph::Builder;

/// A layer has both, of the same input.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let norm = attend.norm;
            let scanned = StateSpace::of(builder)?.second(builder, x, norm)?;
            Ok(builder.add(attended, scanned))
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    decoder(builder, &family)
}
