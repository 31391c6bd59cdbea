//! Graph of `falcon-h1`: attention and a Mamba 2 mixer in parallel.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, StateSpace, attention};
use crate::graph::Builder;

/// A layer adds `attention(x)` and `mamba2(x)` of the same normalized input.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let norm = attend.norm;
            let scanned = StateSpace::of(builder)?.second(builder, x, norm)?;
            Ok(builder.add(attended, scanned))
        },
        ..Decoder::gated(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
