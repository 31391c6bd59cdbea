//! Computation graph of NeoBERT: a bidirectional pre-norm encoder.

use gguf::Finding;
use gguf_graph::RopeLayout;

use crate::blocks::{self, Decoder};
use crate::eurobert::graph::bidirectional;
use crate::graph::Builder;

pub(crate) fn build(builder: &mut Builder<'_>) -> Result<(), Finding> {
    let decoder = Decoder {
        output_norm: "enc.output_norm",
        ..bidirectional(Decoder::llama_like(builder, RopeLayout::Interleaved)?)
    };
    blocks::decoder(builder, &decoder)
}
