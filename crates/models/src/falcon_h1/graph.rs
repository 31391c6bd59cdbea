//! Graph of `falcon-h1`: attention and a Mamba 2 mixer in parallel.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, SsmSizes, attention};
use crate::graph::Builder;

/// A layer adds `attention(x)` and `mamba2(x)` of the same normalized input.
pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, _, attend| {
            let attended = attention(builder, x, &attend)?;
            let norm = attend.norm;
            let scanned = SsmSizes::of(builder)?.mamba2(builder, x, norm)?;
            Ok(builder.add(attended, scanned))
        },
        ..Decoder::llama_like(builder, RopeLayout::Neox)?
    };
    blocks::decoder(builder, &decoder)
}
