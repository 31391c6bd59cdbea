//! Computation graph of SmolLM3: the last of each four layers has no RoPE.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder, attention};
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        attention: |builder, x, layer, mut attend| {
            if layer % 4 == 3 {
                attend.rope = None;
            }
            attention(builder, x, &attend)
        },
        ..Decoder::llama_like(builder, RopeLayout::Interleaved)?
    };
    blocks::decoder(builder, &decoder)
}
