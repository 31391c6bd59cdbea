//! Computation graph of SmolLM3: the last of each four layers has no RoPE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{Decoder, attention, decoder};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let family = Decoder {
        attention: |builder, x, layer, mut attend| {
            if layer % 4 == 3 {
                attend.rotation = None;
            }
            attention(builder, x, &attend)
        },
        ..Decoder::gated(builder, RopeLayout::Interleaved)?
    };
    decoder(builder, &family)
}
